/// Reads big-endian fields from borrowed memory, front to back, and checks every length.
///
/// Valid only as long as the memory from which it was made.
@safe
struct MQTTReader {
  private var position: UnsafeRawPointer?
  private(set) var count: Int

  init(_ bytes: UnsafeRawBufferPointer) {
    unsafe position = bytes.baseAddress
    count = bytes.count
  }

  /// The bytes that haven't been read yet.
  var rest: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(start: position, count: count) }

  mutating func byte(_ what: StaticString) throws(MQTTError) -> UInt8 {
    try unsafe bytes(what, 1)[0]
  }

  mutating func short(_ what: StaticString) throws(MQTTError) -> UInt16 {
    unsafe UInt16(bigEndian: try bytes(what, 2).loadUnaligned(as: UInt16.self))
  }

  mutating func long(_ what: StaticString) throws(MQTTError) -> UInt32 {
    unsafe UInt32(bigEndian: try bytes(what, 4).loadUnaligned(as: UInt32.self))
  }

  /// A variable byte integer: seven bits a byte, the lowest first, in the fewest bytes.
  mutating func variable(_ what: StaticString) throws(MQTTError) -> UInt32 {
    var value: UInt32 = 0
    for place in 0..<4 as Range<UInt32> {
      let byte = try byte(what)
      value |= UInt32(byte & 0x7F) << (place * 7)
      if byte & 0x80 == 0 {
        guard byte != 0 || place == 0 else {
          throw .malformed("\(what) isn't encoded in the fewest bytes")
        }
        return value
      }
    }
    throw .malformed("\(what) has more than four bytes")
  }

  /// The next bytes, in place.
  mutating func bytes(_ what: StaticString, _ length: Int) throws(MQTTError) -> UnsafeRawBufferPointer {
    guard length <= count else {
      throw .malformed("\(what) is cut short: it needs \(length) bytes where \(count) are left")
    }
    let bytes = unsafe UnsafeRawBufferPointer(start: position, count: length)
    unsafe position = position.map { unsafe $0 + length }
    count -= length
    return unsafe bytes
  }

  /// Binary data: a 16-bit length and that many bytes.
  mutating func binary(_ what: StaticString) throws(MQTTError) -> UnsafeRawBufferPointer {
    let length = try short(what)
    return try unsafe bytes(what, Int(length))
  }

  /// A string's bytes: well-formed UTF-8 without U+0000.
  mutating func text(_ what: StaticString) throws(MQTTError) -> UnsafeRawBufferPointer {
    let bytes = try unsafe binary(what)
    guard unsafe MQTTText.isValid(bytes) else {
      throw .malformed("\(what) isn't a string: well-formed UTF-8 without U+0000")
    }
    return unsafe bytes
  }

  mutating func string(_ what: StaticString) throws(MQTTError) -> String {
    unsafe String(decoding: try text(what), as: UTF8.self)
  }
}

/// The rules for strings (MQTT 5, section 1.5.4).
package enum MQTTText {
  /// The longest string, in bytes.
  package static let maximumLength = 65535

  /// Whether it is well-formed UTF-8 without U+0000. Surrogates aren't well-formed; other scalars, including U+FEFF and control characters, are allowed.
  package static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var isASCII = true
    for index in 0..<bytes.count {
      let byte = unsafe bytes[index]
      if byte == 0 { return false }
      if byte >= 0x80 { isASCII = false }
    }
    return isASCII ? true : unsafe isWellFormed(bytes)
  }

  private static func isWellFormed(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var decoder = UTF8()
    var iterator = unsafe bytes.makeIterator()
    while true {
      switch unsafe decoder.decode(&iterator) {
      case .scalarValue: continue
      case .emptyInput: return true
      case .error: return false
      }
    }
  }

  /// Checks the standard's requirement for a topic name: no wildcards. The caller has checked that it is a valid string.
  static func checkTopicName(_ name: UnsafeRawBufferPointer, as what: StaticString) throws(MQTTError) {
    for index in 0..<name.count {
      let byte = unsafe name[index]
      if byte == UInt8(ascii: "+") || byte == UInt8(ascii: "#") {
        throw MQTTError(.topicNameInvalid, "\(what) has a wildcard, which is for filters")
      }
    }
  }
}
