/// Appends little-endian fields to an array of bytes.
///
/// For control frames and the attributes of records: a batch never goes through here as a whole.
public struct ByteWriter {
  public var bytes: [UInt8]

  public init(_ bytes: consuming [UInt8] = []) {
    self.bytes = bytes
  }

  @inlinable
  public mutating func integer<I: FixedWidthInteger & BitwiseCopyable>(_ value: I) {
    unsafe Swift.withUnsafeBytes(of: value.littleEndian) { unsafe bytes.append(contentsOf: $0) }
  }

  public mutating func raw(_ other: UnsafeRawBufferPointer) {
    unsafe bytes.append(contentsOf: other)
  }

  /// A `u16` length and the string's UTF-8, cut between two Unicode scalars if it is longer than `limit` bytes.
  public mutating func string(_ string: String, limit: UInt16 = .max) {
    let kept = string.utf8Prefix(Int(limit))
    integer(UInt16(kept.count))
    bytes.append(contentsOf: kept)
  }

  /// A structure: a `u32` size, then the fields that `body` writes. Receivers skip fields at its end that they don't know.
  public mutating func structure(_ body: (inout ByteWriter) -> Void) {
    let start = bytes.count
    integer(UInt32(0))
    body(&self)
    let size = UInt32(bytes.count - start - MemoryLayout<UInt32>.size)
    unsafe bytes.withUnsafeMutableBytes {
      unsafe $0.storeBytes(of: size.littleEndian, toByteOffset: start, as: UInt32.self)
    }
  }

  /// A list: a `u32` count, then a structure for each element.
  public mutating func list<Element>(_ elements: [Element], _ body: (Element, inout ByteWriter) -> Void) {
    integer(UInt32(elements.count))
    for element in elements { structure { body(element, &$0) } }
  }
}

extension String {
  /// The longest run of whole scalars from the start that has at most `limit` bytes of UTF-8.
  func utf8Prefix(_ limit: Int) -> String.UTF8View.SubSequence {
    guard utf8.count > limit else { return utf8[...] }
    var end = utf8.index(utf8.startIndex, offsetBy: limit)
    while utf8[end] & 0xC0 == 0x80 { end = utf8.index(before: end) }
    return utf8[..<end]
  }
}
