import ReactiveCore
import SluiceWire

/// A broker's topic as a subject: it publishes the messages that are sent to it.
///
/// ```swift
/// let subject = client.subject("orders.eu")
/// subject.send("one")
/// let receipt = try await subject.publish(Message("two", key: "order-2"))
/// try await subject.complete()
/// ```
///
/// Records are published in the order in which they are accepted, those of one thread in the order of its calls. Small records are batched
/// while the connection is busy, and sent at once while it is idle.
///
/// - Demand: the broker grants how many records may be published. `upstream.subscribe(subject)` requests as many from upstream, within
///   the bytes of the ``Buffer``: back-pressure reaches the source. Attach one upstream to a subject; several share the grant, and an
///   idle one keeps its part. Other records wait in the buffer; when it is full, ``send(_:)->_`` returns ``SendResult/bufferFull``, and ``publish(_:)`` waits.
/// - As a publisher, it delivers the messages that it accepts, on the sender's thread, like a `PassthroughSubject`. It ends with the
///   publication: `.finished` once the broker has confirmed the end sent here; with the failure sent here; or with the failure of the publication.
/// - A lost connection: records that aren't acknowledged are kept, and sent again on the next one; each is in the topic once, in its order.
///   The exceptions are ``Acknowledgement/none``, and a topic that was started anew meanwhile, which gets the unacknowledged records
///   and those that follow. When the client gives up, or is closed, the publication ends with that failure; unacknowledged records may
///   be in the topic or not.
/// - A broker whose storage is full or fails: the subject waits and retries, see ``state``, and continues as after a lost connection.
/// - Releasing it ends the publication when all accepted records were sent. The topic continues.
/// - Threads: everything may be called from any thread. Completions are called on the client's loop, or on the calling thread if the
///   result is known.
public final class TopicSubject: Subject, Sendable {
  public typealias Output = Message
  public typealias Failure = ClientError

  /// When the broker acknowledges a record.
  public enum Acknowledgement: Hashable, Sendable {
    /// Never; the broker reports failures only. A record is published at most once: records in flight are lost with the connection, without notice.
    case none
    /// When it is in the topic's log, in memory; in a durable topic whose setting `sync` is always, when it is on disk. Otherwise a crash of the broker
    /// may lose it, and it isn't published again.
    case received
    /// When it is on disk, so that neither a crash of the broker nor of its machine loses it. Topics in memory refuse it with
    /// ``ClientError/Code/unsupported``.
    case durable
  }

  /// How much may wait for the broker's grant.
  public struct Buffer: Hashable, Sendable {
    /// Records, at least 1.
    public var records: Int
    /// Bytes of encoded records. A single record may exceed it.
    public var bytes: Int
    /// Bytes of records that were sent and aren't acknowledged. They are kept, beside the waiting ones, to be sent again after a lost
    /// connection. At the limit nothing more is sent. A single record may exceed it. Default: 32 MiB.
    public var unacknowledgedBytes: Int

    public init(records: Int = 65_536, bytes: Int = 16 << 20, unacknowledgedBytes: Int = 32 << 20) {
      self.records = Swift.max(records, 1)
      self.bytes = Swift.max(bytes, 1)
      self.unacknowledgedBytes = Swift.max(unacknowledgedBytes, 1)
    }
  }

  /// The identity of a producer across restarts of its process.
  ///
  /// A producer's records are numbered, in the order in which they are published, from ``firstSequence`` on. The topic stores each producer's
  /// last number for a while (24 hours by default); a record with an earlier number is acknowledged and not published again. So a restarted
  /// program that gives the same records the same numbers (the lines of a file, say) publishes each exactly once.
  ///
  /// One publication at a time: opening another one with the same `id` ends the earlier one with ``ClientError/Code/producerFenced``. In a cluster there is
  /// an exception: a publication that has lost its node and is ended that way within 15 s is reopened once instead. One of its own openings, delayed between
  /// two nodes, may have arrived after its replacement.
  public struct Producer: Hashable, Sendable {
    /// Not 0, and unique on the topic.
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

  /// The behaviour of ``TopicSubject/send(_:)->_`` when the buffer is full. The `async` functions wait for room instead.
  public enum WhenFull: Hashable, Sendable {
    /// Returns ``SendResult/bufferFull``, and doesn't accept the new record. The publication continues.
    case fail
    /// Drops the oldest waiting record, and accepts the new one.
    case dropOldest
  }

  /// The result of sending a message.
  public enum SendResult: Hashable, Sendable {
    /// It is published as soon as the broker grants it.
    case accepted
    /// The buffer is full, and the message isn't published. Send it again later, or publish it with ``TopicSubject/publish(_:)`` or
    /// ``TopicSubject/enqueue(_:)``, which wait for room.
    case bufferFull
    /// The publication has ended; ``TopicSubject/publish(_:)`` throws why.
    case ended
  }

  /// The broker's acknowledgement of a published record.
  public struct Receipt: Hashable, Sendable {
    /// The record's number: the records published through this subject before it, plus ``Producer/firstSequence``.
    public var sequence: UInt64
    /// Its offset in the topic, if known: an acknowledgement of several records has the last one's only.
    public var offset: UInt64?
  }

  let publication: Publication

  init(_ publication: Publication) {
    self.publication = publication
    publication.core.post(.open(.publication(publication)))
  }

  deinit {
    publication.release(.closedHere)
  }

  /// The topic's name.
  public var topic: String { publication.topic }

  // MARK: Subject

  /// Publishes a message. Never waits: see ``WhenFull`` for when the buffer is full.
  ///
  /// A message beyond the broker's limit ends the publication with ``ClientError/Code/recordTooLarge``. After the end this has no effect.
  ///
  /// - Returns: whether the message was accepted. A program that can't lose messages checks it, or publishes with ``publish(_:)``.
  @discardableResult
  public func send(_ message: Message) -> SendResult {
    publication.send(message)
  }

  /// As the form with a result, for code that knows the subject as a `Subject` only. Messages that it doesn't accept are in ``droppedCount``.
  @_disfavoredOverload
  public func send(_ message: Message) {
    publication.send(message)
  }

  /// Publishes a record without key and headers; copies the payload, and allocates nothing. See ``send(_:)->_``.
  @discardableResult
  public func send(copying payload: UnsafeRawBufferPointer) -> SendResult {
    unsafe publication.send(copying: payload)
  }

  /// Ends the topic, for all its producers and subscribers, after all earlier records. See ``complete(_:)``.
  public func send(completion: Subscribers.Completion<ClientError>) {
    publication.complete(completion, nil)
  }

  /// Attaches an upstream subscription, from which the subject requests what the broker grants. The subject's end cancels it.
  public func send(subscription: any Subscription) {
    publication.attach(subscription)
  }

  public func receive<S: Subscriber>(subscriber: S) where S.Input == Message, S.Failure == ClientError {
    publication.attach(subscriber)
  }

  // MARK: Publishing with a result

  /// Publishes a message, and returns when it is acknowledged; with ``Acknowledgement/none``, when it is sent.
  ///
  /// Waits for room first if the buffer is full. A task that is cancelled while it waits for room publishes nothing; one that is
  /// cancelled later has published.
  ///
  /// - Throws: ``ClientError/Code/recordTooLarge``; why the publication has ended; ``ClientError/Code/cancelled``.
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
  /// Suits tasks that publish many records: ``flush()`` returns when all of them are acknowledged.
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
  /// - Returns: false if there is no room; the record isn't accepted then.
  /// - Throws: as ``publish(_:)``.
  public func enqueue(copying payload: UnsafeRawBufferPointer) throws(ClientError) -> Bool {
    try unsafe publication.enqueue(copying: payload)
  }

  private func enqueue(_ message: Message, awaitsAcknowledgement: Bool) async throws(ClientError) -> Receipt {
    let reply = Reply<Receipt>()
    let publication = publication
    let waiter = publication.enqueue(message, awaitsAcknowledgement: awaitsAcknowledgement, reply.complete)
    return try await reply.value(onCancel: { if let waiter { publication.withdraw(waiter) } })
  }

  /// Returns when all records accepted so far are acknowledged; with ``Acknowledgement/none``, when the broker has read them.
  ///
  /// - Throws: why the publication has ended; ``ClientError/Code/cancelled``.
  public func flush() async throws(ClientError) {
    try await Reply.wait { flush(completion: $0) }
  }

  /// As ``flush()``. The completion is called once.
  public func flush(completion: @escaping @Sendable (Result<Void, ClientError>) -> Void) {
    publication.flush(confirmed: completion)
  }

  /// Ends the topic, for all its producers and subscribers, after all accepted records; returns when the broker has confirmed it.
  ///
  /// ```swift
  /// try await subject.complete(.failure(.topicFailure("the sensor is gone")))
  /// ```
  ///
  /// - Throws: ``ClientError/Code/topicEnded`` if another producer has ended the topic; why the publication has ended;
  ///   ``ClientError/Code/cancelled``, which doesn't stop the topic's end.
  public func complete(_ completion: Subscribers.Completion<ClientError> = .finished)
    async throws(ClientError)
  {
    try await Reply.wait { complete(completion, completion: $0) }
  }

  /// As ``complete(_:)``. The completion is called once.
  public func complete(
    _ ending: Subscribers.Completion<ClientError>,
    completion: @escaping @Sendable (Result<Void, ClientError>) -> Void
  ) {
    publication.complete(ending) { completion($0.map { _ in }) }
  }

  // MARK: Counts

  /// Records accepted from the callers so far, including those dropped later.
  public var acceptedCount: UInt64 { publication.counts.accepted }

  /// Records that the broker has acknowledged; with ``Acknowledgement/none``, that were sent.
  public var acknowledgedCount: UInt64 { publication.counts.acknowledged }

  /// Records for which the buffer had no room: those that ``send(_:)->_`` didn't accept, and those that ``WhenFull/dropOldest`` has dropped.
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
  /// A publisher that publishes a message when it is subscribed to, once for each subscriber, delivers the receipt when the message is
  /// acknowledged, and finishes; or fails as ``publish(_:)`` does. Waits for room first if the buffer is full.
  ///
  /// ```swift
  /// let published = orders
  ///   .flatMap(maxPublishers: .max(100)) { subject.publisher(publishing: Message($0)) }
  ///   .sink { print($0) } receiveValue: { print("published as record \($0.offset ?? 0)") }
  /// ```
  ///
  /// The receipt is delivered on the client's loop. Cancelling drops the receipt; the message is still published.
  public func publisher(publishing message: Message) -> AnyPublisher<Receipt, ClientError> {
    Deferred { [self] in
      Future { promise in self.publish(message, completion: promise) }
    }
    .eraseToAnyPublisher()
  }
}
