/// Text as it stands in JSON.
public enum JSONText {
  /// The text in quotes.
  public static func quoted(_ text: String) -> String { "\"\(escaped(text))\"" }

  /// The text with backslashes before what can't stand in a JSON string.
  ///
  /// - Parameter quotes: false to leave quotation marks and backslashes, and escape control characters only.
  public static func escaped(_ text: String, quotes: Bool = true) -> String {
    // C2 begins the control characters beyond ASCII, among others.
    let needsNone = text.utf8.allSatisfy {
      $0 >= 0x20 && $0 != 0x7F && $0 != 0xC2
        && !(quotes && ($0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\")))
    }
    if needsNone { return text }
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"" where quotes: result += "\\\""
      case "\\" where quotes: result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case _ where scalar.properties.generalCategory == .control:
        let hex = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
