import SluiceIO
import SluiceWire

/// One producer's attachment to a topic. Belongs to its connection's loop.
final class Publication {
  enum Ending {
    case withTopic
    case alone
  }

  let stream: UInt32
  /// Among those of its connection.
  let number: UInt64
  let topic: Topic
  let loopState: TopicLoopState
  unowned let connection: Connection
  let acknowledgement: PublishOpen.Acknowledgement
  /// The topic's epoch that it publishes to. The next one, when the topic starts over without having ended.
  var epoch: TopicEpoch
  /// The producer's number; 0 if it has none.
  let producer: UInt64
  let ticket: ProducerTable.Ticket?
  /// The producer has ended the topic on an earlier publication, and comes back to hear that it did.
  let hasEnded: Bool
  /// Its place in the loopState's list.
  var index = 0

  /// What it expects of the topic's subscribers.
  let role: PublishOpen.Role
  /// Of a source: the topic's connection as the producer was last told it; nil before the first time.
  var toldConnected: Bool?

  /// Records of this producer in the log, and the offset of the last that was appended on this publication.
  private(set) var appended: UInt64
  private(set) var lastOffset: UInt64 = 0
  private(set) var acknowledged: UInt64
  /// Whether only what is on disk is acknowledged.
  let waitsForDisk: Bool
  /// Batches that aren't acknowledged for that reason: their producer's sequence, and the offset of their last record.
  private var unstored = ReadyQueue<(through: UInt64, lastOffset: UInt64)>()
  /// True while PUBLISH_OPENED waits for what the producer has published before to be on disk.
  var isOpening = false
  /// It has ended the topic.
  var hasCompleted = false
  /// Set from COMPLETE or CANCEL on, while what was published is on its way to the disk.
  var ends: Ending?
  /// True while it stands in its connection's list of publications with something to tell.
  var isDue = false
  /// It is granted nothing before its identity may publish more.
  var waitsForRate = false
  /// What it was granted and hasn't used, as the topic's ledger has it.
  var owed = GrantLedger.Allowance()
  /// Since when it has had no demand; nil while it has.
  var heldUpSince: MonotonicTime?

  init(
    stream: UInt32, number: UInt64, loopState: TopicLoopState, connection: Connection, _ frame: PublishOpen,
    _ attachment: Topic.Attachment
  ) {
    self.stream = stream
    self.number = number
    topic = loopState.topic
    self.loopState = loopState
    epoch = attachment.epoch
    self.connection = connection
    acknowledgement = frame.acknowledgement
    role = frame.role
    producer = frame.producer
    ticket = attachment.ticket
    hasEnded = attachment.hasEnded
    waitsForDisk =
      loopState.topic.storage.map { $0.isSynchronous || frame.acknowledgement == .durable } ?? false
    appended = attachment.nextSequence
    acknowledged = attachment.nextSequence
  }

  func appended(_ count: UInt32, lastOffset: UInt64) {
    appended += UInt64(count)
    guard waitsForDisk else {
      self.lastOffset = lastOffset
      return
    }
    if acknowledgement != .none { unstored.append((appended, lastOffset)) }
  }

  /// Whether somebody still has to be told that records are in the log.
  var owesAck: Bool { waitsForDisk && unstored.first != nil }

  /// The acknowledgement that is due, once; nil when everything was acknowledged, or nothing is to be.
  func takeAck() -> Ack? {
    if waitsForDisk { return takeStoredAck() }
    guard acknowledgement != .none, acknowledged < appended else { return nil }
    acknowledged = appended
    return Ack(through: appended, lastOffset: lastOffset)
  }

  private func takeStoredAck() -> Ack? {
    guard let committed = topic.storage?.committed else { return nil }
    var through: UInt64?
    while let next = unstored.first, next.lastOffset < committed {
      (through, lastOffset) = (next.through, next.lastOffset)
      _ = unstored.popFirst()
    }
    guard let through else { return nil }
    acknowledged = through
    return Ack(through: through, lastOffset: lastOffset)
  }
}
