/// Reads little-endian fields out of borrowed memory, front to back, checking every length.
///
/// Valid only as long as the memory it was made from.
public struct ByteReader {
  @usableFromInline var rest: UnsafeRawBufferPointer
  /// The code of the errors that reading throws.
  @usableFromInline let code: ErrorCode

  @inlinable
  public init(_ bytes: UnsafeRawBufferPointer) {
    self.init(bytes, code: .malformedFrame)
  }

  /// - Parameters:
  ///   - bytes: what to read, which must stay as it is for as long as this is used.
  ///   - code: of the errors to throw, where the bytes are a part of something smaller than a frame.
  @inlinable
  public init(_ bytes: UnsafeRawBufferPointer, code: ErrorCode) {
    rest = bytes
    self.code = code
  }

  /// How many bytes are left.
  @inlinable
  public var count: Int { rest.count }

  /// What is left, unread.
  @inlinable
  public var remaining: UnsafeRawBufferPointer { rest }

  /// The next integer.
  ///
  /// - Parameters:
  ///   - what: its name, for the error when it is cut short.
  ///   - type: how it was written.
  @inlinable
  public mutating func integer<I: FixedWidthInteger & BitwiseCopyable>(
    _ what: StaticString, as type: I.Type = I.self
  ) throws(WireError) -> I {
    let size = MemoryLayout<I>.size
    guard rest.count >= size else { throw short(what, size) }
    let value = I(littleEndian: rest.loadUnaligned(as: I.self))
    rest = UnsafeRawBufferPointer(rebasing: rest[size...])
    return value
  }

  /// The next `count` bytes, in place.
  public mutating func bytes(_ what: StaticString, count: Int) throws(WireError) -> UnsafeRawBufferPointer {
    guard count >= 0, rest.count >= count else { throw short(what, count) }
    let bytes = UnsafeRawBufferPointer(rebasing: rest[..<count])
    rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    return bytes
  }

  /// A `u16` length and that many bytes of UTF-8.
  public mutating func string(_ what: StaticString) throws(WireError) -> String {
    let length = try integer(what, as: UInt16.self)
    let bytes = try bytes(what, count: Int(length))
    guard let string = String(validating: bytes, as: UTF8.self) else {
      throw WireError(code, "\(what) isn't valid UTF-8")
    }
    return string
  }

  @usableFromInline
  func short(_ what: StaticString, _ needed: Int) -> WireError {
    WireError(
      code, "\(what) is cut short: it needs \(needed) bytes where \(rest.count) are left")
  }
}
