/// The one form in which text that a peer may have chosen reaches terminals, logs, pages and messages.
///
/// Characters that control a terminal, break lines or reorder text become escapes in the notation of JSON: `\u001b`, `\n`, `\u202e`. Other characters stay.
public enum ShownText {
  /// The context of the text.
  public enum Place: Sendable {
    /// A part of one line: line breaks and tabs are escaped as well.
    case line
    /// Whole lines: line breaks and tabs stay.
    case lines
    /// A string of JSON, between quotation marks. Reading it returns the text.
    case json
    /// A name that has to differ from all others: backslashes are doubled, so that no two texts look the same.
    case name
  }

  /// The text as a part of one line.
  ///
  /// - Parameters:
  ///   - text: the text.
  ///   - limit: the most characters; a longer text is cut, and ends with "…".
  public static func line(_ text: some StringProtocol, limit: Int? = nil) -> String {
    guard let limit,
      let end = text.unicodeScalars.index(text.startIndex, offsetBy: limit, limitedBy: text.endIndex),
      end < text.endIndex
    else { return escaped(String(text), in: .line) }
    return escaped(String(text[..<end]), in: .line) + "…"
  }

  /// The text with escapes for what must not appear in that place.
  public static func escaped(_ text: String, in place: Place) -> String {
    if text.utf8.allSatisfy({ !mayNeedEscape($0, in: place) }) { return text }
    var result = ""
    for scalar in text.unicodeScalars { append(scalar, in: place, to: &result) }
    return result
  }

  /// Bytes as text with escapes. A byte that isn't UTF-8 becomes `\xff`.
  public static func escaped(bytes: some Collection<UInt8>, in place: Place) -> String {
    if let text = String(validating: bytes, as: UTF8.self) { return escaped(text, in: place) }
    var result = ""
    var parser = Unicode.UTF8.ForwardParser()
    var input = bytes.makeIterator()
    var position = bytes.startIndex
    while true {
      switch parser.parseScalar(from: &input) {
      case .valid(let encoded):
        append(Unicode.UTF8.decode(encoded), in: place, to: &result)
        position = bytes.index(position, offsetBy: encoded.count)
      case .error(let length):
        let end = bytes.index(position, offsetBy: length)
        for byte in bytes[position..<end] { result += "\\x\(hexadecimal(UInt32(byte), digits: 2))" }
        position = end
      case .emptyInput: return result
      }
    }
  }

  /// Whether a terminal or a browser obeys the character, or begins a line at it.
  public static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x00...0x1F, 0x7F...0x9F: true
    // Separators of lines and paragraphs, and the characters that reorder the text around them.
    case 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
  }

  // MARK: Characters

  /// C2 begins the control characters beyond ASCII, E2 those that reorder text; both begin others, too.
  private static func mayNeedEscape(_ byte: UInt8, in place: Place) -> Bool {
    switch byte {
    case 0x0A, 0x09: place != .lines
    case 0x00...0x1F, 0x7F, 0xC2, 0xE2: true
    case UInt8(ascii: "\""): place == .json
    case UInt8(ascii: "\\"): place == .json || place == .name
    default: false
    }
  }

  private static func append(_ scalar: Unicode.Scalar, in place: Place, to result: inout String) {
    switch scalar {
    case "\n" where place != .lines: result += "\\n"
    case "\t" where place != .lines: result += "\\t"
    case "\r": result += "\\r"
    case "\"" where place == .json: result += "\\\""
    case "\\" where place == .json || place == .name: result += "\\\\"
    case "\n", "\t": result.unicodeScalars.append(scalar)
    case _ where isControl(scalar): result += "\\u\(hexadecimal(scalar.value, digits: 4))"
    default: result.unicodeScalars.append(scalar)
    }
  }

  private static func hexadecimal(_ number: UInt32, digits: Int) -> String {
    let text = String(number, radix: 16)
    return String(repeating: "0", count: max(digits - text.count, 0)) + text
  }
}
