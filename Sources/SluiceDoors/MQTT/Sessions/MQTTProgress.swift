/// How far a session has come that outlives its connection, beside what ``MQTTSession`` knows of itself.
final class MQTTProgress {
  /// The producer of its messages at QoS 2; 0 for none.
  let producer: UInt64
  /// Where its subscriptions go on, by their numbers.
  var positions: [UInt16: MQTTPositions] = [:]
  /// Where messages at QoS 2 are in their topics, by their sequences.
  var exact: [UInt64: MQTTExactPlace] = [:]
  /// Those of earlier connections.
  var formerExact: [UInt64: MQTTExactPlace] = [:]

  init(producer: UInt64) {
    self.producer = producer
  }

  /// As an earlier connection has left it.
  init(_ kept: MQTTKeptSession) {
    producer = kept.producer
    positions = kept.positions
    formerExact = kept.exact
  }
}
