import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceSession
import SluiceTopics
import SluiceWire
import Synchronization

/// One producer's attachment to a topic: its demand, and its records in the log and on disk. Belongs to its connection's loop.
final class PublicationStream: DueStream, TopicPublisher {
  /// How the stream ends once everything published on it is on disk.
  private enum Ending {
    case withTopic
    case alone
  }

  let stream: UInt32
  let topic: Topic
  let loopState: TopicLoopState
  unowned let streams: StreamMultiplexer
  /// The epoch to which it publishes. Replaced by the topic's next epoch if the topic starts over without having ended.
  @safe @exclusivity(unchecked) private var epoch: TopicEpoch
  /// The producer's ID; 0 if it has none.
  private let producer: UInt64
  private let ticket: ProducerTable.Ticket?
  /// Whether the producer has ended the topic on an earlier publication. It then attaches again only to learn the result.
  private let hasEnded: Bool
  /// Its index in the loop state's list.
  var index = 0
  /// The producer's role, such as source or requester.
  private let role: PublishOpen.Role
  /// For a source: whether the topic is connected, as the producer was last notified; nil before the first notification.
  private var toldConnected: Bool?
  @safe @exclusivity(unchecked) private(set) var acknowledgements: PendingAcknowledgements
  /// The number of the epoch that PUBLISH_OPENED had; 0 before.
  var openedEpoch: UInt64 = 0
  /// True while PUBLISH_OPENED waits until the producer's earlier records are on disk.
  @safe @exclusivity(unchecked) var isOpening = false
  /// The producer has ended the topic.
  private var hasCompleted = false
  /// Set by COMPLETE or CANCEL, while published records still have to be stored.
  private var ends: Ending?
  /// True while it is in its connection's list of publications with acknowledgements or grants to send.
  @safe @exclusivity(unchecked) private var isDue = false
  /// It gets no grant until its identity may publish more.
  var waitsForRate = false
  /// The time since which it has had no demand; nil while it has some.
  @safe @exclusivity(unchecked) var heldUpSince: MonotonicTime?
  /// Set if the lease was invalid when the publication ended: CANCELLED is sent when it is valid again. The value is whether the topic started over.
  private var heldEnd: Bool?

  init(
    stream: UInt32, loopState: TopicLoopState, streams: StreamMultiplexer, _ frame: PublishOpen,
    _ attachment: Topic.Attachment
  ) {
    self.stream = stream
    topic = loopState.topic
    self.loopState = loopState
    epoch = attachment.epoch
    self.streams = streams
    role = frame.role
    producer = frame.producer
    ticket = attachment.ticket
    hasEnded = attachment.hasEnded
    acknowledgements = PendingAcknowledgements(
      frame.acknowledgement, waitsForDisk: frame.acknowledgement.waitsForDisk(of: topic),
      startingAt: attachment.nextSequence)
  }

  var kind: StreamKind { .publication }

  // MARK: Records

  /// Appends a batch that the session has checked.
  ///
  /// - Parameter isAwaited: whether the producer waits for the acknowledgement. If not, it is sent with the next grant or with that of the next awaited
  ///   batch.
  func append(_ count: UInt32, _ batch: UnsafeRawBufferPointer, isAwaited: Bool) {
    // Copied to a constant, since each access of the property counts two references.
    let streams = streams
    let topics = streams.topics
    guard let used = streams.session.publication(stream)?.used(records: UInt64(count), bytes: batch.count)
    else { return }
    guard !hasEnded else {
      topic.noteUsed(used)
      let message = "topic \(topic.name) was ended by this producer; publish to another topic"
      return streams.refuse(stream, Fault(code: .topicEnded, message: message))
    }
    if used.bytes < UInt64(batch.count) {
      // The last record of a batch may exceed the granted bytes.
      streams.client.account?.publishing?.spend(records: 0, bytes: UInt64(batch.count) - used.bytes)
    }
    switch unsafe topic.append(
      batch, count: count, at: topics.loop.wallClock, in: epoch, isSource: role == .source, using: used,
      by: ticket, needsSubscriber: role == .requester)
    {
    case .appended(let lastOffset):
      acknowledgements.appended(count, lastOffset: lastOffset)
      loopState.received(count, bytes: batch.count)
      topics.received(records: count)
      topics.appended(to: topic, through: lastOffset)
      if isAwaited || streams.session.creditToGrant(stream).map({ topic.mayGrant(to: $0.held) }) ?? false {
        makeDue(on: streams)
      }
    case .unfit(let fault):
      settle()
      streams.refuse(stream, fault)
    case .refused:
      // The topic has ended meanwhile, or the producer is fenced: a frame about it follows.
      break
    }
  }

  /// Queues acknowledgements and grants to be sent at the end of this turn.
  func makeDue(on streams: StreamMultiplexer) {
    guard !isDue else { return }
    isDue = true
    streams.makeDue(self)
  }

  /// Called at the end of the turn: sends one ACK and one DEMAND for all batches of the turn.
  func settleDue() {
    isDue = false
    let streams = streams
    // Only if the stream still belongs to this publication.
    if streams.session.object(stream) === self { settle(on: streams) }
  }

  private func settle() { settle(on: streams) }

  /// Sends the acknowledgement that is due, and a new grant.
  private func settle(on streams: StreamMultiplexer) {
    // The producer doesn't know yet that the stream is open.
    if isOpening { return }
    if streams.holdsAcknowledgements { return }
    acknowledge(on: streams)
    grantMore(on: streams)?.encode(stream: stream, into: &streams.answers)
  }

  /// Sends the acknowledgement that is due, if the producer wants any.
  func acknowledge(on streams: StreamMultiplexer) {
    if isOpening { return }
    if streams.holdsAcknowledgements { return }
    let former = acknowledgements.acknowledged
    guard let ack = acknowledgements.take(committed: topic.storage?.committed) else { return }
    loopState.acknowledged(acknowledgements.acknowledged - former)
    ack.encode(stream: stream, into: &streams.answers)
  }

  // MARK: The topic

  /// Called when the topic or its subscribers have changed: sends the frames that follow from it to the producer.
  func topicChanged() {
    if let startedOver = heldEnd {
      if let fault = topic.departureFault { return streams.refuse(stream, fault) }
      if streams.holdsAcknowledgements { return }
      heldEnd = nil
      return ended(startedOver: startedOver)
    }
    if let fault = topic.storageRefusal, !isOpening, !topic.isGone {
      // A producer that has cancelled waits for CANCELLED, not for the disk.
      if ends == .alone { return ended() }
      settle()
      topic.storage?.service.waiters.add(
        StoreWaiter(streams, stream, topic: topic, fault, received: info.received))
      return streams.refuse(stream, fault)
    }
    // The stream ends when its records are on disk, which sends the last frame.
    if ends != nil, !topic.isGone { return }
    let condition = epoch.condition
    if condition == .ended || condition == .superseded {
      if role == .source, topic.startsSourcesAnew, !topic.isGone {
        // A source publishes one run to one epoch, so the broker drops records that the source has sent for the former epoch.
        settle()
        return streams.refuse(stream, .startedOver(topic.name))
      }
      if condition == .ended { return topicEnded() }
      epoch = topic.epoch
    }
    if let fault = topic.departureFault { return streams.refuse(stream, fault) }
    // The next records would belong to another epoch than that of PUBLISH_OPENED, so a producer with an ID has to attach again. A producer without an ID
    // continues, since it can't repeat unacknowledged records.
    if producer != 0, openedEpoch != 0, openedEpoch != epoch.number, topic.isDurable {
      settle()
      return streams.refuse(stream, .epochContinued(topic.name))
    }
    if role == .source, !isOpening {
      let isConnected = topic.isConnected
      if isConnected != toldConnected {
        toldConnected = isConnected
        if isConnected {
          streams.send(Connected(), stream: stream)
        } else {
          streams.send(Disconnected(), stream: stream)
        }
      }
    }
    makeDue(on: streams)
  }

  /// Ends the stream because another producer has ended the topic.
  private func topicEnded() {
    if hasEnded { return }
    settle()
    streams.endStream(stream)
    streams.send(Complete(epoch.ending ?? .finished), stream: stream)
  }

  /// Ends the stream because another publication uses the producer's ID.
  func fenced() {
    settle()
    streams.refuse(stream, .fenced(on: topic.name))
  }

  // MARK: The end

  /// Ends the topic for the producer.
  func complete(_ ending: Complete.Ending) {
    settle()
    if let fault = topic.end(ending, in: epoch, by: producer, ticket, isSource: role == .source) {
      streams.releaseStream(stream)
      return streams.send(fault, stream: stream)
    }
    var failure: ErrorCode?
    if case .failure(let code, _) = ending { failure = code }
    streams.client.report { .topicEnded($0, topic: topic.name, failure: failure) }
    hasCompleted = true
    guard topic.storage != nil else {
      let settings = topic.settings
      return ended(startedOver: settings.scope == .whileConnected && settings.connect != .immediate)
    }
    ends = .withTopic
    whenCommitted { $0.ended() }
  }

  /// Ends the publication. Returns false because it sends CANCELLED itself, after the last acknowledgement, which may have to wait for the disk.
  func cancel() -> Bool {
    settle()
    if acknowledgements.areOwed, topic.storageRefusal == nil {
      ends = .alone
      whenCommitted { $0.ended() }
    } else {
      ended()
    }
    return false
  }

  /// Ends the stream because its producer has ended the topic or cancelled the publication.
  private func ended(startedOver: Bool = false) {
    if streams.holdsAcknowledgements { return heldEnd = startedOver }
    settle()
    streams.releaseStream(stream)
    streams.send(Cancelled(hasStartedOver: startedOver), stream: stream)
  }

  /// Calls `body` when all changes of the topic so far are on disk, unless the publication has ended by then.
  func whenCommitted(_ body: @escaping @Sendable (PublicationStream) -> Void) {
    let continuation = streams.continuation(of: stream)
    topic.whenCommitted { continuation.resume($0, body) }
  }

  func release() {
    let held = streams.session.held(stream)
    loopState.remove(self, returning: held, ticket, hasCompleted: hasCompleted)
    streams.client.account?.publishing?.giveBack(held)
  }

  func reconsider() throws(WireError) {
    // A publication that is ending isn't affected: its records were accepted before.
    guard ends == nil, let denied = try streams.client.denial(of: .publishOpen, on: topic.name) else {
      return
    }
    settle()
    throw denied
  }

  func isDrained(isPatient: Bool) -> Bool { !acknowledgements.areOwed && ends == nil }
}
