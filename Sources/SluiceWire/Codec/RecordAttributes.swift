/// The parts of an attributed record's body, in place.
///
/// Valid only as long as the memory it was made from.
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
    var reader = ByteReader(body, code: .malformedBatch)
    let flags: UInt8 = try reader.integer("record flags")
    guard flags & ~(Flag.key | Flag.headers) == 0 else {
      throw WireError(.malformedBatch, "record flags \(flags) aren't defined")
    }
    if flags & Flag.key != 0 {
      let length: UInt16 = try reader.integer("record key length")
      key = try reader.bytes("record key", count: Int(length))
    } else {
      key = nil
    }
    if flags & Flag.headers != 0 {
      let count: UInt16 = try reader.integer("record header count")
      let before = reader.remaining
      for _ in 0..<count {
        let name: UInt16 = try reader.integer("header name length")
        _ = try reader.bytes("header name", count: Int(name))
        let value: UInt32 = try reader.integer("header value length")
        _ = try reader.bytes("header value", count: Int(value))
      }
      headerCount = Int(count)
      headerBytes = UnsafeRawBufferPointer(rebasing: before[..<(before.count - reader.count)])
    } else {
      headerCount = 0
      headerBytes = UnsafeRawBufferPointer(start: nil, count: 0)
    }
    payload = reader.remaining
  }

  /// Calls `body` with each header's name and value, in the order in which the producer gave them.
  public func forEachHeader(
    _ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void
  ) {
    guard var position = headerBytes.baseAddress else { return }
    for _ in 0..<headerCount {
      let nameLength = Int(UInt16(littleEndian: position.loadUnaligned(as: UInt16.self)))
      let name = UnsafeRawBufferPointer(start: position + 2, count: nameLength)
      position += 2 + nameLength
      let valueLength = Int(UInt32(littleEndian: position.loadUnaligned(as: UInt32.self)))
      body(name, UnsafeRawBufferPointer(start: position + 4, count: valueLength))
      position += 4 + valueLength
    }
  }
}
