/// The progress of a session that outlives its connection, in addition to the state of ``MQTTSession``.
final class MQTTProgress {
  /// The producer ID of its messages at QoS 2; 0 for none.
  let producer: UInt64
  /// The positions at which its subscriptions resume, by their numbers.
  var positions: [UInt16: MQTTPositions] = [:]
  /// The positions of messages at QoS 2 in their topics, by their sequences.
  var exact: [UInt64: MQTTExactPlace] = [:]
  /// Those of messages from earlier connections.
  var formerExact: [UInt64: MQTTExactPlace] = [:]

  init(producer: UInt64) {
    self.producer = producer
  }

  /// Restores the state that an earlier connection has left.
  init(_ kept: MQTTKeptSession) {
    producer = kept.producer
    positions = kept.positions
    formerExact = kept.exact
  }
}
