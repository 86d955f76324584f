import SluiceWire

/// Runs the wire decoders on arbitrary bytes.
public enum WireProbe: Probe {
  public enum Target: String, CaseIterable, Sendable {
    /// One byte for the side, one for the number of chunks, one for each chunk's length; then the stream.
    case streams
    /// One byte for the type of frame; then the body.
    case bodies
    /// A byte for the side and two bytes about the other side, then a frame.
    case handshakes
    /// One byte for the count of records; then the batch.
    case batches
    /// Filters and records: see ``WireProbe/filter(_:)``.
    case filters
    /// A name.
    case topicNames
    /// Patterns and names, a line each.
    case patterns
    /// Encoded as in a frame.
    case topicSettings
  }

  public static func run(_ target: Target, on bytes: [UInt8]) throws {
    var input = ProbeInput(bytes)
    switch target {
    case .streams:
      let side: [Side?] = [nil, .broker, .client]
      let choice = Int(input.byte()) % side.count
      let count = Int(input.byte()) % 16
      let chunks = input.bytes(count).map { Int($0) }
      try stream(input.remaining(), chunks: chunks, openingAt: side[choice])
    case .bodies:
      let number = input.byte()
      guard let type = frameTypes.first(where: { $0.type.rawValue == number }) else { return }
      try body(input.remaining(), of: type)
    case .handshakes: try handshake(&input)
    case .batches:
      let count = UInt32(input.byte())
      try batch(input.remaining(), count: count)
    case .filters: try filter(&input)
    case .topicNames: try topicName(bytes)
    case .patterns: try patterns(bytes)
    case .topicSettings: try settings(bytes)
    }
  }

  static let maximumFrame = 4096
  static let maximumRecord = 64
}
