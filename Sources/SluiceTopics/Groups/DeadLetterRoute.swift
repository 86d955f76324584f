import SluiceWire

/// The way of dead letters to a topic that may be another node's, or become one. Belongs to a loop, on which each answer is called, once, and never from
/// within the call.
package protocol DeadLetterRoute: AnyObject, Sendable {
  /// Attaches a producer to the topic of the dead letters, which is made with its first use.
  ///
  /// - Parameters:
  ///   - name: the topic's name.
  ///   - producer: the producer's number.
  ///   - first: the sequence of the first record that it still has.
  ///   - durably: whether dead letters are done with when they are on disk, in a durable topic.
  ///   - answer: gets the sequence that the topic expects next: what comes before it is there.
  func open(
    _ name: String, producer: UInt64, from first: UInt64, durably: Bool,
    _ answer: @escaping @Sendable (Result<UInt64, WireError>) -> Void)

  /// Appends a dead letter of a producer that is attached.
  ///
  /// - Parameters:
  ///   - deadLetter: a batch of one record.
  ///   - sequence: its sequence, which the topic expects next.
  ///   - answer: gets nil when the topic has it; else why it isn't known to have it.
  func send(
    _ deadLetter: BatchBuilder, to name: String, producer: UInt64, sequence: UInt64, durably: Bool,
    _ answer: @escaping @Sendable (WireError?) -> Void)

  /// Detaches a producer; nothing more is answered.
  func close(producer: UInt64)
}
