import SluiceWire

/// Text as a JSON string.
public enum JSONText {
  /// The text in quotes.
  public static func quoted(_ text: String) -> String { "\"\(ShownText.escaped(text, in: .json))\"" }
}

/// A JSON value. A dictionary literal is an object: members keep their order, and those with the value nil are left out.
public enum JSON: Sendable, ExpressibleByDictionaryLiteral, CustomStringConvertible {
  case text(String)
  /// A number, an object or another value, in the notation of JSON.
  case notation(String)

  public static let null = JSON.notation("null")

  /// Null for no text.
  public static func textOrNull(_ value: String?) -> JSON { value.map { .text($0) } ?? .null }
  /// Null for an empty text.
  public static func textUnlessEmpty(_ text: String) -> JSON { text.isEmpty ? .null : .text(text) }
  public static func flag(_ value: Bool) -> JSON { .notation(value ? "true" : "false") }
  /// Null for no value.
  public static func number<Number: BinaryInteger>(_ value: Number?) -> JSON {
    value.map { .notation(String($0)) } ?? .null
  }
  /// Null for infinity and NaN.
  public static func number(_ value: Double, decimals: Int) -> JSON {
    value.isFinite ? .notation(Magnitude.fixed(value, decimals: decimals)) : .null
  }
  public static func array(_ values: some Sequence<JSON>) -> JSON {
    .notation("[\(values.map(\.description).joined(separator: ","))]")
  }
  public static func object(_ members: some Sequence<(String, JSON?)>) -> JSON {
    let texts = members.compactMap { name, value in value.map { "\(JSONText.quoted(name)):\($0)" } }
    return .notation("{\(texts.joined(separator: ","))}")
  }

  public init(dictionaryLiteral members: (String, JSON?)...) { self = .object(members) }

  /// An object with the members of both objects, neither of which may be empty.
  public static func + (left: JSON, right: JSON) -> JSON {
    .notation("\(left.description.dropLast()),\(right.description.dropFirst())")
  }

  /// The value in JSON's notation, without a line break.
  public var description: String {
    switch self {
    case .text(let text): JSONText.quoted(text)
    case .notation(let notation): notation
    }
  }

  /// The value in a line of its own.
  public var line: String { "\(self)\n" }
}

/// Columns of text.
public enum TextTable {
  /// Rows as lines, with columns two spaces apart. The first `leftColumns` are aligned to the left, the others, which are numbers, to the right.
  ///
  /// Control characters are escaped, so that names that peers choose can't control the terminal or forge rows.
  public static func render(_ rows: [[String]], leftColumns: Int) -> String {
    let rows = rows.map { $0.map { ShownText.line($0) } }
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
