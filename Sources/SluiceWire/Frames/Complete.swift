/// COMPLETE: the topic's terminal event.
///
/// From a producer, on its publication: the topic ends after all records published on that stream before; answered by the
/// last ``Ack`` and ``Cancelled``. From the broker, on a subscription: after the last record that it is owed. From the broker,
/// on a publication: another producer has ended the topic. Either way the stream is over.
///
/// ```
/// u8 kind (0 finished, 1 failure) · 3 bytes 0 · u32 code · string message
/// ```
///
/// A failure's code and message are the producer's; the message has ``Limits/message`` bytes at most.
public struct Complete: Frame {
  public static let type = FrameType.complete

  public enum Ending: Hashable, Sendable {
    case finished
    case failure(code: ErrorCode, message: String)
  }

  public var ending: Ending

  public init(_ ending: Ending) {
    self.ending = ending
  }

  public func encodeBody(into writer: inout ByteWriter) {
    let (kind, code, message): (UInt32, UInt32, String) =
      switch ending {
      case .finished: (0, 0, "")
      case .failure(let code, let message): (1, code.rawValue, message)
      }
    writer.integer(kind)
    writer.integer(code)
    writer.string(message, limit: Limits.message)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    let kind: UInt8 = try reader.integer("COMPLETE kind")
    _ = try unsafe reader.bytes("COMPLETE reserved", count: 3)
    let code: UInt32 = try reader.integer("COMPLETE code")
    let message = try reader.string("COMPLETE message")
    switch kind {
    case 0: ending = .finished
    case 1: ending = .failure(code: ErrorCode(rawValue: code), message: message)
    default: throw WireError(.malformedFrame, "COMPLETE names kind \(kind); 0 and 1 are defined")
    }
  }
}
