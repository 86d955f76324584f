import SluiceIO
import SluiceWire

/// One producer's attachment to a topic. Belongs to its connection's loop.
final class Publication {
  let stream: UInt32
  let topic: Topic
  let tap: TopicTap
  unowned let connection: Connection
  let acknowledgement: PublishOpen.Acknowledgement
  /// The topic's life that it publishes to. The next one, when the topic starts over without having ended.
  var life: TopicLife
  /// The producer's number; 0 if it has none.
  let producer: UInt64
  let ticket: ProducerTable.Ticket?
  /// The producer has ended the topic on an earlier publication, and comes back to hear that it did.
  let hasEnded: Bool
  /// Its place in the tap's list.
  var index = 0

  /// Whether it is told of the topic's connection, and what it was told last; nil before the first time.
  let isSource: Bool
  var toldConnected: Bool?

  /// Records of this producer in the log, and the offset of the last that was appended on this publication.
  private(set) var appended: UInt64
  private(set) var lastOffset: UInt64 = 0
  private var acknowledged: UInt64
  /// True while it stands in its connection's list of publications with something to tell.
  var isDue = false
  /// What it was granted and hasn't used, as the topic's ledger has it.
  var owed = GrantLedger.Allowance()
  /// Since when it has had no demand; nil while it has.
  var heldUpSince: MonotonicTime?

  init(
    stream: UInt32, tap: TopicTap, connection: Connection, _ frame: PublishOpen,
    _ attachment: Topic.Attachment
  ) {
    self.stream = stream
    topic = tap.topic
    self.tap = tap
    life = attachment.life
    self.connection = connection
    acknowledgement = frame.acknowledgement
    isSource = frame.isSource
    producer = frame.producer
    ticket = attachment.ticket
    hasEnded = attachment.hasEnded
    appended = attachment.nextSequence
    acknowledged = attachment.nextSequence
  }

  func appended(_ count: UInt32, lastOffset: UInt64) {
    appended += UInt64(count)
    self.lastOffset = lastOffset
  }

  /// The acknowledgement that is due, once; nil when everything was acknowledged, or nothing is to be.
  func takeAck() -> Ack? {
    guard acknowledgement != .none, acknowledged < appended else { return nil }
    acknowledged = appended
    return Ack(through: appended, lastOffset: lastOffset)
  }
}
