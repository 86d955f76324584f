/// GOAWAY: the sender will close this connection, on stream 0. What is granted is still delivered and what was published is
/// still acknowledged; new streams are refused.
///
/// ```
/// u32 code · string message
/// ```
public struct GoAway: Frame {
  public static let type = FrameType.goAway

  /// Why, ``ErrorCode/shuttingDown`` for an orderly stop.
  public var code: ErrorCode
  public var message: String

  public init(code: ErrorCode, message: String) {
    self.code = code
    self.message = message
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(code.rawValue)
    writer.string(message, limit: Limits.message)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    code = ErrorCode(rawValue: try reader.integer("GOAWAY code"))
    message = try reader.string("GOAWAY message")
  }
}
