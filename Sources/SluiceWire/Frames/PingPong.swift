/// PING: asks for a sign of life, on stream 0. The receiver answers with a ``Pong`` that carries the same token.
///
/// ```
/// u64 token
/// ```
public struct Ping: Frame {
  public static let type = FrameType.ping

  /// Returned as it is.
  public var token: UInt64

  public init(token: UInt64) {
    self.token = token
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(token)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    token = try reader.integer("PING token")
  }
}

/// PONG: the answer to a ``Ping``, on stream 0.
///
/// ```
/// u64 token
/// ```
public struct Pong: Frame {
  public static let type = FrameType.pong

  /// The token of the PING.
  public var token: UInt64

  public init(token: UInt64) {
    self.token = token
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(token)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    token = try reader.integer("PONG token")
  }
}
