import SluiceWire

/// One producer's attachment to a topic. Belongs to its connection's loop.
final class Publication {
  let stream: UInt32
  let topic: Topic
  let tap: TopicTap
  unowned let connection: Connection
  let acknowledgement: PublishOpen.Acknowledgement
  /// Its place in the tap's list.
  var index = 0

  /// Records appended on this publication, and the offset of the last.
  private(set) var appended: UInt64 = 0
  private(set) var lastOffset: UInt64 = 0
  private var acknowledged: UInt64 = 0
  /// True while it stands in its connection's list of publications with something to tell.
  var isDue = false

  init(
    stream: UInt32, tap: TopicTap, connection: Connection, acknowledgement: PublishOpen.Acknowledgement
  ) {
    self.stream = stream
    topic = tap.topic
    self.tap = tap
    self.connection = connection
    self.acknowledgement = acknowledgement
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
