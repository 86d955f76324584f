import ReactiveCore
import SluiceWire

/// A topic of a broker as a subject: what is sent to it is published.
///
/// ```swift
/// let subject = client.subject("orders.eu")
/// subject.send("one")
/// let receipt = try await subject.publish(Message("two", key: "order-2"))
/// try await subject.complete()
/// ```
///
/// Records are published in the order in which they are accepted, those of one thread in the order of its calls. Small ones that
/// are sent while the connection is busy travel together; one that is sent while it is idle goes out at once.
///
/// - Demand: the broker grants how many records may be published. `upstream.subscribe(subject)` requests from upstream just that,
///   and not more bytes than the ``Buffer`` holds: back-pressure reaches the source. Attach one upstream to a subject; several share the
///   grant, and one that stays silent keeps its part. Records that are sent otherwise wait in the buffer, and when that is
///   full ``WhenFull`` applies.
/// - As a publisher, it passes on what it accepts, on the sender's thread, like a `PassthroughSubject`, and ends as the publication does: `.finished`
///   when the topic's end, sent here, is confirmed; with the failure sent here; or with why the publication was broken off.
/// - A lost connection: records that aren't acknowledged are kept, and sent again on the next one; each is in the topic once, in its order.
///   The exceptions are ``Acknowledgement/none``, and a topic that has been started anew meanwhile, which has what wasn't acknowledged
///   and what follows. When the client gives up, or is closed, the publication ends with that failure, and records that weren't
///   acknowledged may be in the topic or not.
/// - A broker whose storage is full or fails: the subject waits and tries again, see ``state``, and goes on as after a lost connection.
/// - Releasing it gives up the publication when everything accepted was sent. The topic goes on.
/// - Threads: everything may be called from any thread. Completions are called on the client's loop, or on the calling thread when the
///   answer is known.
public final class TopicSubject: Subject, Sendable {
  public typealias Output = Message
  public typealias Failure = ClientError

  /// When the broker acknowledges a record.
  public enum Acknowledgement: Hashable, Sendable {
    /// Never; only failures come back. Then a record is published at most once: what is under way when the connection is lost may be
    /// lost with it, and nobody is told.
    case none
    /// When it is in the topic's log, in memory; in a durable topic whose setting `sync` is always, when it is on disk. Otherwise a crash of the broker
    /// may take it, and it isn't published again.
    case received
    /// When it is on disk, so that neither a crash of the broker nor of its machine loses it. Topics that keep their records in memory only refuse it
    /// with ``ClientError/Code/unsupported``.
    case durable
  }

  /// How much may wait for the broker's grant.
  public struct Buffer: Hashable, Sendable {
    /// Records, at least 1.
    public var records: Int
    /// Bytes of encoded records. A single record may go beyond it.
    public var bytes: Int
    /// Bytes of records that were sent and aren't acknowledged: they are kept, beside those that wait, to be sent again after a lost
    /// connection. Nothing more is sent when there are as many. A single record may go beyond it. Default: 32 MiB.
    public var unacknowledgedBytes: Int

    public init(records: Int = 65_536, bytes: Int = 16 << 20, unacknowledgedBytes: Int = 32 << 20) {
      self.records = Swift.max(records, 1)
      self.bytes = Swift.max(bytes, 1)
      self.unacknowledgedBytes = Swift.max(unacknowledgedBytes, 1)
    }
  }

  /// Who publishes, for a producer that has a life longer than its process.
  ///
  /// Records of a producer are numbered, in the order in which they are published, from ``firstSequence`` on. The topic remembers for
  /// a while (24 hours, unless the broker is told otherwise) how far it has come with each; a record with a number that it has had is
  /// acknowledged and not published again. So a program that is started again, and gives the same records the same numbers (the lines
  /// of a file, say), publishes each exactly once, whatever it had published before.
  ///
  /// One publication at a time: the last one that is opened with a producer's `id` ends the one before with
  /// ``ClientError/Code/producerFenced``.
  public struct Producer: Hashable, Sendable {
    /// Not 0, and nobody else's on the topic.
    public var id: UInt64
    /// The number of the first record that will be published. At most 2^62.
    public var firstSequence: UInt64

    public init(id: UInt64, firstSequence: UInt64 = 0) {
      precondition(id != 0, "a producer's id isn't 0")
      precondition(firstSequence <= PublishOpen.largestFirstSequence, "firstSequence is at most 2^62")
      self.id = id
      self.firstSequence = firstSequence
    }
  }

  /// What ``TopicSubject/send(_:)`` does when the buffer is full. The `async` functions wait for room instead.
  public enum WhenFull: Hashable, Sendable {
    /// Gives up the publication with ``ClientError/Code/bufferFull``, when what was accepted before is sent.
    case fail
    /// Forgets the oldest record that waits.
    case dropOldest
    /// Forgets the record that is being sent.
    case dropNewest
  }

  /// What the broker said about a published record.
  public struct Receipt: Hashable, Sendable {
    /// Its number: how many records were published through this subject before it, and ``Producer/firstSequence``.
    public var sequence: UInt64
    /// Its offset in the topic, if the acknowledgement told: one for several records names the last one's only.
    public var offset: UInt64?
  }

  let publication: Publication

  init(_ publication: Publication) {
    self.publication = publication
    publication.core.post(.open(.publication(publication)))
  }

  deinit {
    publication.giveUp(.closedHere)
  }

  /// The topic's name.
  public var topic: String { publication.topic }

  // MARK: Subject

  /// Publishes a message. Never waits: see ``WhenFull`` for when the buffer is full.
  ///
  /// A message that is longer than the broker takes gives up the publication with ``ClientError/Code/recordTooLarge``. After the end nothing
  /// happens.
  public func send(_ message: Message) {
    publication.send(message)
  }

  /// Publishes a record without key and headers; copies the payload, and allocates nothing. See ``send(_:)``.
  public func send(copying payload: UnsafeRawBufferPointer) {
    unsafe publication.send(copying: payload)
  }

  /// Ends the topic, for all its producers and subscribers, after what was sent before. See ``complete(_:)``.
  public func send(completion: Subscribers.Completion<ClientError>) {
    publication.complete(completion, nil)
  }

  /// Gives the subject a source to draw from, as far as the broker grants. The subject's end cancels it.
  public func send(subscription: any Subscription) {
    publication.attach(subscription)
  }

  public func receive<S: Subscriber>(subscriber: S) where S.Input == Message, S.Failure == ClientError {
    publication.attach(subscriber)
  }

  // MARK: Publishing with an answer

  /// Publishes a message, and returns when it is acknowledged; with ``Acknowledgement/none``, when it is sent.
  ///
  /// Waits for room first, if the buffer is full. A task that is cancelled while it waits for room publishes nothing; one that is
  /// cancelled later has published.
  ///
  /// - Throws: ``ClientError/Code/recordTooLarge``; why the publication is over; ``ClientError/Code/cancelled``.
  @discardableResult
  public func publish(_ message: Message) async throws(ClientError) -> Receipt {
    try await enqueue(message, awaitsAcknowledgement: true)
  }

  /// As ``publish(_:)``. The completion is called once.
  public func publish(
    _ message: Message, completion: @escaping @Sendable (Result<Receipt, ClientError>) -> Void
  ) {
    _ = publication.enqueue(message, awaitsAcknowledgement: true, completion)
  }

  /// Publishes a message without waiting for its acknowledgement: returns as soon as there is room for it.
  ///
  /// The way to publish much from a task: ``flush()`` tells when all of it is acknowledged.
  ///
  /// - Throws: as ``publish(_:)``.
  public func enqueue(_ message: Message) async throws(ClientError) {
    _ = try await enqueue(message, awaitsAcknowledgement: false)
  }

  /// As ``enqueue(_:)``. The completion is called once.
  public func enqueue(
    _ message: Message, completion: @escaping @Sendable (Result<Void, ClientError>) -> Void
  ) {
    _ = publication.enqueue(message, awaitsAcknowledgement: false) { completion($0.map { _ in }) }
  }

  /// Publishes a record without key and headers if there is room; copies the payload.
  ///
  /// - Returns: false when there is no room; nothing was taken then.
  /// - Throws: as ``publish(_:)``.
  public func enqueue(copying payload: UnsafeRawBufferPointer) throws(ClientError) -> Bool {
    try unsafe publication.enqueue(copying: payload)
  }

  private func enqueue(
    _ message: Message, awaitsAcknowledgement: Bool
  ) async throws(ClientError) -> Receipt {
    let reply = Reply<Receipt>()
    let publication = publication
    let applicant = publication.enqueue(message, awaitsAcknowledgement: awaitsAcknowledgement, reply.complete)
    return try await reply.value(onCancel: { if let applicant { publication.withdraw(applicant) } })
  }

  /// Returns when everything accepted so far is acknowledged; with ``Acknowledgement/none``, when the broker has read it.
  ///
  /// - Throws: why the publication is over; ``ClientError/Code/cancelled``.
  public func flush() async throws(ClientError) {
    let reply = Reply<Void>()
    flush(completion: reply.complete)
    try await reply.value()
  }

  /// As ``flush()``. The completion is called once.
  public func flush(completion: @escaping @Sendable (Result<Void, ClientError>) -> Void) {
    let publication = publication
    publication.flush { outcome in
      guard publication.acknowledgement == .none, case .success = outcome else {
        return completion(outcome.map { _ in })
      }
      // Frames keep their order, so whoever has answered this has read what was sent before.
      publication.core.post(
        .open(
          .request(
            Request(.ping, timeout: nil) { answer in
              completion(answer.flatMap { _ in publication.failure.map { .failure($0) } ?? .success(()) })
            })))
    }
  }

  /// Ends the topic, for all its producers and subscribers, after what was accepted before; returns when the broker has confirmed it.
  ///
  /// ```swift
  /// try await subject.complete(.failure(.topicFailure("the sensor is gone")))
  /// ```
  ///
  /// - Throws: ``ClientError/Code/topicEnded`` when another producer was faster; why the publication is over;
  ///   ``ClientError/Code/cancelled``, though the topic ends all the same then.
  public func complete(_ completion: Subscribers.Completion<ClientError> = .finished)
    async throws(ClientError)
  {
    let reply = Reply<Void>()
    complete(completion, completion: reply.complete)
    try await reply.value()
  }

  /// As ``complete(_:)``. The completion is called once.
  public func complete(
    _ ending: Subscribers.Completion<ClientError>,
    completion: @escaping @Sendable (Result<Void, ClientError>) -> Void
  ) {
    publication.complete(ending) { completion($0.map { _ in }) }
  }

  // MARK: Figures

  /// Records taken over from the callers so far, those dropped later included.
  public var acceptedCount: UInt64 { publication.counts.accepted }

  /// Records that the broker has acknowledged; with ``Acknowledgement/none``, that were sent.
  public var acknowledgedCount: UInt64 { publication.counts.acknowledged }

  /// Records that ``WhenFull`` has dropped.
  public var droppedCount: UInt64 { publication.counts.dropped }
}

extension PublishOpen.Acknowledgement {
  init(_ acknowledgement: TopicSubject.Acknowledgement) {
    self =
      switch acknowledgement {
      case .none: .none
      case .received: .received
      case .durable: .durable
      }
  }
}

extension TopicSubject {
  /// Publishing a message as a step of a pipeline: publishes when it is subscribed to, once for each subscriber, delivers the receipt when
  /// the message is acknowledged, and finishes; or fails as ``publish(_:)`` does. Waits for room first, if the buffer is full.
  ///
  /// ```swift
  /// let published = orders
  ///   .flatMap(maxPublishers: .max(100)) { subject.publisher(publishing: Message($0)) }
  ///   .sink { print($0) } receiveValue: { print("published as record \($0.offset ?? 0)") }
  /// ```
  ///
  /// The receipt is delivered on the client's loop. Cancelling lets go of the receipt; the message is published all the same.
  public func publisher(publishing message: Message) -> AnyPublisher<Receipt, ClientError> {
    Deferred { [self] in
      Future { promise in self.publish(message, completion: promise) }
    }
    .eraseToAnyPublisher()
  }
}
