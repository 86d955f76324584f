import SluiceWire

/// Sends dead letters to a topic that another node owns, or may own later. Belongs to a loop. Each answer is called once, on that loop, and never from within
/// the call.
package protocol DeadLetterRoute: AnyObject, Sendable {
  /// Attaches a producer to the dead-letter topic, which is created with its first use.
  ///
  /// - Parameters:
  ///   - name: the topic's name.
  ///   - producer: the producer's ID.
  ///   - first: the sequence of the first record that the producer still has.
  ///   - durably: whether a dead letter counts as stored only when it is on disk, in a durable topic.
  ///   - answer: gets the sequence that the topic expects next: the topic has all earlier ones.
  func open(
    _ name: String, producer: UInt64, from first: UInt64, durably: Bool,
    _ answer: @escaping @Sendable (Result<UInt64, WireError>) -> Void)

  /// Appends a dead letter of a producer that is attached.
  ///
  /// - Parameters:
  ///   - deadLetter: a batch of one record.
  ///   - sequence: its sequence, which the topic expects next.
  ///   - answer: gets nil when the topic has stored the dead letter; otherwise the reason why that isn't certain.
  func send(
    _ deadLetter: BatchBuilder, to name: String, producer: UInt64, sequence: UInt64, durably: Bool,
    _ answer: @escaping @Sendable (WireError?) -> Void)

  /// Detaches a producer; nothing more is answered.
  func close(producer: UInt64)
}
