import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceSession
import SluiceTopics
import SluiceWire
import Synchronization

/// One producer's attachment to a topic: what the producer may publish, and what of it is in the log, and on disk. Belongs to its connection's loop.
final class PublicationStream: DueStream, TopicPublisher {
  /// What the stream ends with once everything published on it is on disk.
  private enum Ending {
    case withTopic
    case alone
  }

  let stream: UInt32
  let topic: Topic
  let loopState: TopicLoopState
  unowned let streams: StreamMultiplexer
  /// The topic's epoch that it publishes to. The next one, when the topic starts over without having ended.
  @safe @exclusivity(unchecked) private var epoch: TopicEpoch
  /// The producer's number; 0 if it has none.
  private let producer: UInt64
  private let ticket: ProducerTable.Ticket?
  /// The producer has ended the topic on an earlier publication, and comes back to hear that it did.
  private let hasEnded: Bool
  /// Its place in the loop state's list.
  var index = 0
  /// What it expects of the topic's subscribers.
  private let role: PublishOpen.Role
  /// Of a source: the topic's connection as the producer was last told it; nil before the first time.
  private var toldConnected: Bool?
  @safe @exclusivity(unchecked) private(set) var acknowledgements: PendingAcknowledgements
  /// The number of the epoch that PUBLISH_OPENED had; 0 before.
  var openedEpoch: UInt64 = 0
  /// True while PUBLISH_OPENED waits for what the producer has published before to be on disk.
  @safe @exclusivity(unchecked) var isOpening = false
  /// It has ended the topic.
  private var hasCompleted = false
  /// Set from COMPLETE or CANCEL on, while what was published is on its way to the disk.
  private var ends: Ending?
  /// True while it stands in its connection's list of publications with something to tell.
  @safe @exclusivity(unchecked) private var isDue = false
  /// It is granted nothing before its identity may publish more.
  var waitsForRate = false
  /// Since when it has had no demand; nil while it has.
  @safe @exclusivity(unchecked) var heldUpSince: MonotonicTime?
  /// The lease was invalid when the publication ended: the producer is told when it is valid again, and whether the topic started over with it.
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
  /// - Parameter isAwaited: whether the producer waits for the acknowledgement; otherwise it comes with the next grant, or that of a batch that is.
  func append(_ count: UInt32, _ batch: UnsafeRawBufferPointer, isAwaited: Bool) {
    // Once: each use of what is read here counts two references.
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
      // A batch may end beyond what was granted: with its last record.
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
      // The topic has ended meanwhile, or the producer is fenced: the stream is about to be told.
      break
    }
  }

  /// It has something to tell the producer at the end of this turn.
  func makeDue(on streams: StreamMultiplexer) {
    guard !isDue else { return }
    isDue = true
    streams.makeDue(self)
  }

  /// The end of the turn: one ACK and one DEMAND however many batches came.
  func settleDue() {
    isDue = false
    let streams = streams
    // Only if the stream is still this publication's.
    if streams.session.object(stream) === self { settle(on: streams) }
  }

  private func settle() { settle(on: streams) }

  /// Tells the producer what is in the log, and what more it may send.
  private func settle(on streams: StreamMultiplexer) {
    // It doesn't know yet that the stream is open.
    if isOpening { return }
    if streams.holdsAcknowledgements { return }
    acknowledge(on: streams)
    grantMore(on: streams)?.encode(stream: stream, into: &streams.answers)
  }

  /// Acknowledges what is kept, if the producer wants to know and doesn't yet.
  func acknowledge(on streams: StreamMultiplexer) {
    if isOpening { return }
    if streams.holdsAcknowledgements { return }
    let former = acknowledgements.acknowledged
    guard let ack = acknowledgements.take(committed: topic.storage?.committed) else { return }
    loopState.acknowledged(acknowledgements.acknowledged - former)
    ack.encode(stream: stream, into: &streams.answers)
  }

  // MARK: The topic

  /// Something about the topic has changed, or its subscribers have: tells the producer what concerns it.
  func topicChanged() {
    if let startedOver = heldEnd {
      if let fault = topic.departureFault { return streams.refuse(stream, fault) }
      if streams.holdsAcknowledgements { return }
      heldEnd = nil
      return ended(startedOver: startedOver)
    }
    if let fault = topic.storageRefusal, !isOpening, !topic.isGone {
      // A producer that has left waits for CANCELLED, not for the disk.
      if ends == .alone { return ended() }
      settle()
      topic.storage?.service.waiters.add(
        StoreWaiter(streams, stream, topic: topic, fault, received: info.received))
      return streams.refuse(stream, fault)
    }
    // It waits for the disk, and is told then.
    if ends != nil, !topic.isGone { return }
    let condition = epoch.condition
    if condition == .ended || condition == .superseded {
      if role == .source, topic.startsSourcesAnew, !topic.isGone {
        // A source publishes one run to one epoch, so the broker drops what the source has sent for the epoch that is over.
        settle()
        return streams.refuse(stream, .startedOver(topic.name))
      }
      if condition == .ended { return topicEnded() }
      epoch = topic.epoch
    }
    if let fault = topic.departureFault { return streams.refuse(stream, fault) }
    // What it publishes next is of another history than the one that its producer knows by this number. Without a number it can't send again what is under way.
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

  /// Another producer has ended the topic.
  private func topicEnded() {
    if hasEnded { return }
    settle()
    streams.endStream(stream)
    streams.send(Complete(epoch.ending ?? .finished), stream: stream)
  }

  /// Another publication has the producer's number now.
  func fenced() {
    settle()
    streams.refuse(stream, .fenced(on: topic.name))
  }

  // MARK: The end

  /// The producer ends the topic.
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

  /// The producer leaves. It is owed the last acknowledgement, which may have to wait for the disk.
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

  /// The topic is over, or the publication, as the producer has said.
  private func ended(startedOver: Bool = false) {
    if streams.holdsAcknowledgements { return heldEnd = startedOver }
    settle()
    streams.releaseStream(stream)
    streams.send(Cancelled(hasStartedOver: startedOver), stream: stream)
  }

  /// Calls `body` when all that has happened to the topic is on disk, unless the publication is over by then.
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
    // A publication that ends goes on as it is, with what was published before.
    guard ends == nil, let denied = try streams.client.denial(of: .publishOpen, on: topic.name) else {
      return
    }
    settle()
    throw denied
  }

  func isDrained(isPatient: Bool) -> Bool { !acknowledgements.areOwed && ends == nil }
}
