/// Text in the notation of JSON.
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

/// Builds an object of JSON, its members in the order in which they are added.
public struct JSONObject {
  private var members = ""

  public init() {}

  /// The object, without a line break.
  public var text: String { "{\(members)}" }

  public mutating func add(_ name: String, _ value: String) { append(name, JSONText.quoted(value)) }
  public mutating func add(_ name: String, _ value: Bool) { append(name, value ? "true" : "false") }
  public mutating func add(_ name: String, _ value: UInt64) { append(name, String(value)) }
  public mutating func add(_ name: String, _ value: Double, decimals: Int) {
    append(name, value.isFinite ? Magnitude.fixed(value, decimals: decimals) : "null")
  }
  /// Null for no value.
  public mutating func add(_ name: String, _ value: UInt64?) {
    append(name, value.map { String($0) } ?? "null")
  }
  public mutating func add(_ name: String, _ value: JSONObject) { append(name, value.text) }
  public mutating func add(_ name: String, _ values: [JSONObject]) {
    append(name, "[\(values.map(\.text).joined(separator: ","))]")
  }

  /// A value that is JSON already.
  public mutating func add(_ name: String, json: String) { append(name, json) }

  private mutating func append(_ name: String, _ value: String) {
    if !members.isEmpty { members += "," }
    members += "\(JSONText.quoted(name)):\(value)"
  }
}

/// Columns of text.
public enum TextTable {
  /// Rows as lines, the columns aligned and two spaces apart: the first `leftColumns` to the left, the others, being numbers, to the right.
  ///
  /// Control characters are escaped: names that peers choose can't control the terminal, or forge rows.
  public static func render(_ rows: [[String]], leftColumns: Int) -> String {
    let rows = rows.map { $0.map { JSONText.escaped($0, quotes: false) } }
    let columns = rows.map(\.count).max() ?? 0
    let widths = (0..<columns).map { column in
      rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
    }
    return rows.map { row in
      let cells = row.enumerated().map { column, cell in
        let space = String(repeating: " ", count: widths[column] - cell.count)
        return column < leftColumns ? cell + space : space + cell
      }
      let line = cells.joined(separator: "  ")
      return String(line[..<(line.lastIndex { $0 != " " }.map(line.index(after:)) ?? line.startIndex)]) + "\n"
    }.joined()
  }
}
