import SluiceWire

/// The rules that all sessions of a broker share.
package struct ServerSessionRules: ~Copyable, Sendable {
  package var handshake: ServerHandshake
  package let records: RecordLimit
  package var maximumStreams: UInt32
  /// Positions of patterns' topics that a connection may have on their way, and what they may take of memory.
  package var maximumPositions: Int
  package var maximumPositionBytes: Int
  /// Whether clients have to authenticate.
  package var asksIdentity: Bool

  package init(
    handshake: ServerHandshake, maximumRecord: Int, maximumStreams: UInt32, maximumPositions: Int,
    maximumPositionBytes: Int = .max, asksIdentity: Bool = false
  ) {
    self.handshake = handshake
    records = RecordLimit(maximumRecord)
    self.maximumStreams = maximumStreams
    self.maximumPositions = maximumPositions
    self.maximumPositionBytes = maximumPositionBytes
    self.asksIdentity = asksIdentity
  }
}
