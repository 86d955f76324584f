/// ERROR: something went wrong. On stream 0 it names the cause for which the sender closes the connection next; on another
/// stream it ends that stream, or answers the request that was made on it.
///
/// ```
/// u32 code · string message
/// ```
public struct Fault: Frame {
  public static let type = FrameType.error

  public var code: ErrorCode
  /// What was wrong and what to do about it.
  public var message: String

  public init(code: ErrorCode, message: String) {
    self.code = code
    self.message = message
  }

  public init(_ error: WireError) {
    self.init(code: error.code, message: error.message)
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(code.rawValue)
    writer.string(message, limit: Limits.message)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    code = ErrorCode(rawValue: try reader.integer("ERROR code"))
    message = try reader.string("ERROR message")
  }
}
