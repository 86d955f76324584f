import Glibc

/// Bytes of a message in the memory in which they arrived. Valid only during the call that passes them; ``array`` and ``text`` copy them.
@safe
public struct NATSBytes {
  /// The memory itself, for callers that decode in place.
  public let memory: UnsafeRawBufferPointer

  public init(_ memory: UnsafeRawBufferPointer) {
    unsafe self.memory = unsafe memory
  }

  public var count: Int { unsafe memory.count }
  public var isEmpty: Bool { count == 0 }

  /// A copy.
  public var array: [UInt8] { unsafe [UInt8](memory) }

  /// A copy as text; invalid UTF-8 is replaced.
  public var text: String { unsafe String(decoding: memory, as: UTF8.self) }

  /// The byte at `index`, from 0. Traps outside.
  public subscript(index: Int) -> UInt8 {
    precondition(index >= 0 && index < count, "a byte outside the slice")
    return unsafe memory[index]
  }

  /// The bytes of a range of positions, from 0. Traps outside.
  public subscript(range: Range<Int>) -> NATSBytes {
    precondition(range.lowerBound >= 0 && range.upperBound <= count, "a range outside the slice")
    return unsafe NATSBytes(UnsafeRawBufferPointer(rebasing: memory[range]))
  }

  /// The bytes from `start` to the end.
  func dropFirst(_ start: Int) -> NATSBytes { self[min(start, count)..<count] }

  /// The position of the first `byte` at or after `start`; nil for none.
  func firstIndex(of byte: UInt8, from start: Int = 0) -> Int? {
    guard start < count, let base = unsafe memory.baseAddress,
      let found = unsafe memchr(base + start, Int32(byte), count - start)
    else { return nil }
    return unsafe UnsafeRawPointer(found) - base
  }

  func hasPrefix(_ prefix: [UInt8]) -> Bool {
    guard count >= prefix.count else { return false }
    for index in prefix.indices where unsafe memory[index] != prefix[index] { return false }
    return true
  }

  /// The bytes without blanks at either end.
  var trimmed: NATSBytes {
    var (start, end) = (0, count)
    while start < end, unsafe isBlank(memory[start]) { start += 1 }
    while end > start, unsafe isBlank(memory[end - 1]) { end -= 1 }
    return self[start..<end]
  }

  /// The decimal number; nil if the bytes contain anything else, or if it exceeds `Int.max`.
  public var number: Int? {
    guard !isEmpty, count <= 19 else { return nil }
    var value = 0
    for index in 0..<count {
      let digit = unsafe Int(memory[index]) - 0x30
      guard digit >= 0, digit <= 9 else { return nil }
      let (product, tooLarge) = value.multipliedReportingOverflow(by: 10)
      let (sum, overflow) = product.addingReportingOverflow(digit)
      if tooLarge || overflow { return nil }
      value = sum
    }
    return value
  }

  /// Whether these are the bytes of `text`.
  public static func == (bytes: NATSBytes, text: String) -> Bool {
    guard bytes.count == text.utf8.count else { return false }
    var index = 0
    for byte in text.utf8 {
      if unsafe bytes.memory[index] != byte { return false }
      index += 1
    }
    return true
  }
}

func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

extension [UInt8] {
  /// Passes the array's memory, valid during the call.
  func withBytes<Result>(_ body: (NATSBytes) throws(NATSError) -> Result) throws(NATSError) -> Result {
    try unsafe span.withUnsafeBytes { memory throws(NATSError) in try unsafe body(NATSBytes(memory)) }
  }
}
