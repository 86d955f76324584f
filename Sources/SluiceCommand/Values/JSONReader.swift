/// A parsed JSON value.
public enum JSONContent: Hashable, Sendable {
  case null
  case flag(Bool)
  /// In the notation of the input.
  case number(String)
  case text(String)
  case array([JSONContent])
  /// If several members have the same name, the last one counts.
  case object([String: JSONContent])

  public var text: String? { if case .text(let text) = self { text } else { nil } }
  public var array: [JSONContent]? { if case .array(let values) = self { values } else { nil } }
  public var object: [String: JSONContent]? { if case .object(let members) = self { members } else { nil } }
}

/// Reads JSON of RFC 8259: one value, and white space around it. Never traps, and bounds its depth.
@safe
public struct JSONReader {
  private static let deepest = 64

  private let bytes: UnsafeRawBufferPointer
  private var position = 0

  /// The value in `bytes`.
  ///
  /// - Throws: ``ValueError`` with the number of the first wrong byte, from 1.
  public static func read(_ bytes: UnsafeRawBufferPointer) throws(ValueError) -> JSONContent {
    var reader = unsafe JSONReader(bytes: bytes)
    let value = try reader.value(depth: 0)
    reader.skipSpace()
    guard reader.position == bytes.count else { throw reader.error("nothing may follow the value") }
    return value
  }

  /// The value in `bytes`.
  public static func read(_ bytes: [UInt8]) throws(ValueError) -> JSONContent {
    let result = unsafe bytes.withUnsafeBytes { bytes in
      Result { () throws(ValueError) in try unsafe read(bytes) }
    }
    return try result.get()
  }

  private init(bytes: UnsafeRawBufferPointer) { unsafe self.bytes = unsafe bytes }

  private func error(_ what: String) -> ValueError {
    ValueError("it isn't JSON at byte \(position + 1): \(what)")
  }

  private var next: UInt8? { unsafe position < bytes.count ? bytes[position] : nil }

  private mutating func skipSpace() {
    while let byte = next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { position += 1 }
  }

  private mutating func take(_ letter: Unicode.Scalar) -> Bool {
    guard next == UInt8(ascii: letter) else { return false }
    position += 1
    return true
  }

  private mutating func value(depth: Int) throws(ValueError) -> JSONContent {
    guard depth < Self.deepest else { throw error("it is nested too deeply") }
    skipSpace()
    switch next {
    case UInt8(ascii: "{"): return try object(depth)
    case UInt8(ascii: "["): return try array(depth)
    case UInt8(ascii: "\""): return .text(try text())
    case UInt8(ascii: "t"): return try word("true", .flag(true))
    case UInt8(ascii: "f"): return try word("false", .flag(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    case nil: throw error("it ends before a value")
    default: return try number()
    }
  }

  private mutating func word(_ word: String, _ value: JSONContent) throws(ValueError) -> JSONContent {
    for byte in word.utf8 {
      guard next == byte else { throw error("a value is expected") }
      position += 1
    }
    return value
  }

  private mutating func number() throws(ValueError) -> JSONContent {
    let start = position
    _ = take("-")
    try digits()
    if take(".") { try digits() }
    if take("e") || take("E") {
      _ = take("+") || take("-")
      try digits()
    }
    return .number(unsafe String(decoding: bytes[start..<position], as: UTF8.self))
  }

  private mutating func digits() throws(ValueError) {
    let start = position
    while let byte = next, (0x30...0x39).contains(byte) { position += 1 }
    guard position > start else { throw error("a value is expected") }
  }

  private mutating func array(_ depth: Int) throws(ValueError) -> JSONContent {
    position += 1
    var values: [JSONContent] = []
    skipSpace()
    if take("]") { return .array(values) }
    while true {
      values.append(try value(depth: depth + 1))
      skipSpace()
      if take("]") { return .array(values) }
      guard take(",") else { throw error("a comma or ] is expected") }
    }
  }

  private mutating func object(_ depth: Int) throws(ValueError) -> JSONContent {
    position += 1
    var members: [String: JSONContent] = [:]
    skipSpace()
    if take("}") { return .object(members) }
    while true {
      skipSpace()
      guard next == UInt8(ascii: "\"") else { throw error("a name in quotation marks is expected") }
      let name = try text()
      skipSpace()
      guard take(":") else { throw error("a colon is expected") }
      members[name] = try value(depth: depth + 1)
      skipSpace()
      if take("}") { return .object(members) }
      guard take(",") else { throw error("a comma or } is expected") }
    }
  }

  private mutating func text() throws(ValueError) -> String {
    position += 1
    var text: [UInt8] = []
    while let byte = next {
      position += 1
      switch byte {
      case UInt8(ascii: "\""):
        guard let text = String(validating: text, as: UTF8.self) else { throw error("the text isn't UTF-8") }
        return text
      case UInt8(ascii: "\\"): text += String(try escaped()).utf8
      case 0..<0x20:
        position -= 1
        throw error("a text contains a control character")
      default: text.append(byte)
      }
    }
    throw error("a text has no end")
  }

  private mutating func escaped() throws(ValueError) -> Unicode.Scalar {
    guard let letter = next else { throw error("a text has no end") }
    position += 1
    switch letter {
    case UInt8(ascii: "\""): return "\""
    case UInt8(ascii: "\\"): return "\\"
    case UInt8(ascii: "/"): return "/"
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{C}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"):
      let first = try hexadecimal()
      if let scalar = Unicode.Scalar(first) { return scalar }
      guard (0xD800..<0xDC00).contains(first), take("\\"), take("u") else {
        throw error("a surrogate pair is incomplete")
      }
      let second = try hexadecimal()
      guard (0xDC00..<0xE000).contains(second),
        let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
      else { throw error("a surrogate pair is incomplete") }
      return scalar
    default: throw error("a backslash begins no known escape")
    }
  }

  private mutating func hexadecimal() throws(ValueError) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let byte = next, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
        throw error("four hexadecimal digits are expected")
      }
      value = value << 4 | UInt32(digit)
      position += 1
    }
    return value
  }
}
