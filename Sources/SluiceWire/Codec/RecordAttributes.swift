/// The parts of an attributed record's body, in place.
///
/// Valid only as long as the memory it was made from.
@safe
public struct RecordAttributes {
  /// The bits of the body's first byte.
  public enum Flag {
    public static let key: UInt8 = 1
    public static let headers: UInt8 = 2
  }

  /// Absent and empty are different things.
  public let key: UnsafeRawBufferPointer?
  /// The encoded headers behind their count; ``forEachHeader(_:)`` reads them.
  let headerBytes: UnsafeRawBufferPointer
  public let headerCount: Int
  /// The rest of the body; may be empty.
  public let payload: UnsafeRawBufferPointer

  /// Reads and checks a body of kind ``RecordLayout/Kind/attributed``.
  ///
  /// - Throws: ``ErrorCode/malformedBatch`` when a part is cut short or a flag isn't defined.
  public init(_ body: UnsafeRawBufferPointer) throws(WireError) {
    var reader = unsafe ByteReader(body, code: .malformedBatch)
    let flags: UInt8 = try reader.integer("record flags")
    guard flags & ~(Flag.key | Flag.headers) == 0 else {
      throw WireError(.malformedBatch, "record flags \(flags) aren't defined")
    }
    if flags & Flag.key != 0 {
      let length: UInt16 = try reader.integer("record key length")
      unsafe key = unsafe try reader.bytes("record key", count: Int(length))
    } else {
      unsafe key = nil
    }
    if flags & Flag.headers != 0 {
      let count: UInt16 = try reader.integer("record header count")
      let before = unsafe reader.remaining
      for _ in 0..<count {
        let name: UInt16 = try reader.integer("header name length")
        _ = try unsafe reader.bytes("header name", count: Int(name))
        let value: UInt32 = try reader.integer("header value length")
        _ = try unsafe reader.bytes("header value", count: Int(value))
      }
      headerCount = Int(count)
      unsafe headerBytes = unsafe UnsafeRawBufferPointer(rebasing: before[..<(before.count - reader.count)])
    } else {
      headerCount = 0
      unsafe headerBytes = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    }
    unsafe payload = unsafe reader.remaining
  }

  /// Calls `body` with each header's name and value, in the order in which the producer gave them.
  public func forEachHeader(
    _ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void
  ) {
    guard var position = unsafe headerBytes.baseAddress else { return }
    for _ in 0..<headerCount {
      let nameLength = unsafe Int(UInt16(littleEndian: position.loadUnaligned(as: UInt16.self)))
      let name = unsafe UnsafeRawBufferPointer(start: position + 2, count: nameLength)
      unsafe position += 2 + nameLength
      let valueLength = unsafe Int(UInt32(littleEndian: position.loadUnaligned(as: UInt32.self)))
      unsafe body(name, UnsafeRawBufferPointer(start: position + 4, count: valueLength))
      unsafe position += 4 + valueLength
    }
  }
}
