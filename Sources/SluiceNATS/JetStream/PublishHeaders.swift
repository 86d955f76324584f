/// The messages that a roll-up replaces.
public enum RollUp: Sendable {
  /// All earlier messages of the same subject.
  case subject
  /// All earlier messages of the stream.
  case stream
}

// Headers that determine how JetStream stores a message.
extension NATSHeaders {
  /// Stores the message only if this is the stream's last sequence; 0 for a stream that never had a message. In a batch, on the first message only.
  public mutating func expectLastSequence(_ sequence: UInt64) {
    append("Nats-Expected-Last-Sequence", sequence)
  }

  /// Stores the message only if this is the sequence of the last message of its subject, or of the subjects that `pattern` matches; 0 for none.
  public mutating func expectLastSequenceOfSubject(
    _ sequence: UInt64, matching pattern: String? = nil
  ) throws(NATSError) {
    append("Nats-Expected-Last-Subject-Sequence", sequence)
    if let pattern {
      try NATSSubject.check(pattern, wildcards: true)
      append("Nats-Expected-Last-Subject-Sequence-Subject", pattern)
    }
  }

  /// Makes the engine reject the message if the subject belongs to another stream.
  public mutating func expectStream(_ name: String) throws(NATSError) {
    try add("Nats-Expected-Stream", name)
  }

  /// Sets the message's ID. The engine stores only one message with an ID within the stream's window for duplicates.
  public mutating func setMessageID(_ id: String) throws(NATSError) {
    try add("Nats-Msg-Id", id)
  }

  /// Sets the time after which the engine deletes the message, at least a second; fractions of seconds are rounded up. The stream must allow it.
  public mutating func setTimeToLive(_ time: Duration) {
    let (seconds, fraction) = time.components
    append("Nats-TTL", "\(max(1, fraction > 0 ? seconds + 1 : seconds))s")
  }

  /// Makes the message replace earlier ones. The stream must allow it.
  public mutating func rollUp(_ extent: RollUp) {
    append("Nats-Rollup", extent == .subject ? "sub" : "all")
  }

  mutating func setBatch(_ id: String, sequence: UInt64, isLast: Bool) {
    append("Nats-Batch-Id", id)
    append("Nats-Batch-Sequence", sequence)
    if isLast { append("Nats-Batch-Commit", 1) }
  }
}
