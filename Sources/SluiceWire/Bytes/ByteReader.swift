/// Reads little-endian fields out of borrowed memory, front to back, checking every length.
///
/// Valid only as long as the memory it was made from.
@safe
public struct ByteReader {
  @usableFromInline var rest: UnsafeRawBufferPointer
  /// The code of the errors that reading throws.
  @usableFromInline let code: ErrorCode

  @inlinable
  public init(_ bytes: UnsafeRawBufferPointer) {
    unsafe self.init(bytes, code: .malformedFrame)
  }

  /// - Parameters:
  ///   - bytes: what to read, which must stay as it is for as long as this is used.
  ///   - code: of the errors to throw, where the bytes are a part of something smaller than a frame.
  @inlinable
  public init(_ bytes: UnsafeRawBufferPointer, code: ErrorCode) {
    unsafe rest = unsafe bytes
    self.code = code
  }

  /// How many bytes are left.
  @inlinable
  public var count: Int { unsafe rest.count }

  /// The unread rest.
  @inlinable
  public var remaining: UnsafeRawBufferPointer { unsafe rest }

  /// The next integer.
  ///
  /// - Parameters:
  ///   - what: its name, for the error when it is cut short.
  ///   - type: how it was written.
  // Always: an integer is read in fewer instructions than a function is called.
  @inlinable @inline(__always)
  public mutating func integer<I: FixedWidthInteger & BitwiseCopyable>(
    _ what: StaticString, as type: I.Type = I.self
  ) throws(WireError) -> I {
    let size = MemoryLayout<I>.size
    guard unsafe rest.count >= size else { throw short(what, size) }
    let value = unsafe I(littleEndian: rest.loadUnaligned(as: I.self))
    unsafe rest = unsafe UnsafeRawBufferPointer(rebasing: rest[size...])
    return value
  }

  /// The next `count` bytes, in place.
  public mutating func bytes(_ what: StaticString, count: Int) throws(WireError) -> UnsafeRawBufferPointer {
    guard count >= 0, unsafe rest.count >= count else { throw short(what, count) }
    let bytes = unsafe UnsafeRawBufferPointer(rebasing: rest[..<count])
    unsafe rest = unsafe UnsafeRawBufferPointer(rebasing: rest[count...])
    return unsafe bytes
  }

  /// A `u16` length and that many bytes of UTF-8.
  public mutating func string(_ what: StaticString) throws(WireError) -> String {
    let length = try integer(what, as: UInt16.self)
    let bytes = try unsafe bytes(what, count: Int(length))
    guard let string = unsafe String(validating: bytes, as: UTF8.self) else {
      throw WireError(code, "\(what) isn't valid UTF-8")
    }
    return string
  }

  /// A structure: a `u32` size and that many bytes, which the result reads. Fields that this version doesn't know stand at their end,
  /// unread.
  public mutating func structure(_ what: StaticString) throws(WireError) -> ByteReader {
    let size = try integer(what, as: UInt32.self)
    return unsafe ByteReader(try bytes(what, count: Int(size)), code: code)
  }

  /// A list: a `u32` count and that many structures.
  ///
  /// - Parameters:
  ///   - what: the name of one element, for the error when it is cut short.
  ///   - read: reads an element's fields. Fields that it leaves unread are skipped.
  public mutating func list<Element>(
    _ what: StaticString, _ read: (inout ByteReader) throws(WireError) -> Element
  ) throws(WireError) -> [Element] {
    var elements: [Element] = []
    for _ in 0..<(try integer(what, as: UInt32.self)) {
      var element = try structure(what)
      elements.append(try read(&element))
    }
    return elements
  }

  @usableFromInline
  func short(_ what: StaticString, _ needed: Int) -> WireError {
    WireError(code, unsafe "\(what) is cut short: it needs \(needed) bytes where \(rest.count) are left")
  }
}
