import SluiceWire

/// A frame received from the broker.
public struct ReceivedFrame: Sendable, CustomStringConvertible {
  public var header: FrameHeader
  public var body: [UInt8]

  public init(header: FrameHeader, body: [UInt8]) {
    self.header = header
    self.body = body
  }

  public var type: FrameType { header.type }
  public var stream: UInt32 { header.stream }

  /// - Throws: ``TestFailure`` if it has another type, `WireError` if it can't be decoded.
  public func decode<F: Frame>(_ type: F.Type) throws -> F {
    guard header.type == F.type else { throw TestFailure("expected \(F.type), got \(self)") }
    return try body.withUnsafeBytes { bytes throws(WireError) in try F(body: bytes) }
  }

  public var description: String {
    if type == .error, let fault = try? decode(Fault.self) {
      return "ERROR \(fault.code) on stream \(stream): \(fault.message)"
    }
    return "\(type) of \(body.count) bytes on stream \(stream)"
  }
}
