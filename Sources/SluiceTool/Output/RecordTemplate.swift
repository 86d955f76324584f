import SluiceClient
import SluiceCommand

/// A line with placeholders for parts of a record: `{offset} {payload}`.
struct RecordTemplate {
  private enum Piece {
    case text([UInt8])
    case topic
    case offset
    case time
    case key
    case headers
    case header(String)
    case size
    case deliveries
    case payload
  }

  private var pieces: [Piece] = []

  /// The names that can stand in braces.
  static let names = [
    "topic", "offset", "time", "key", "headers", "header:NAME", "size", "deliveries", "payload",
  ]

  /// `{headers}\t{payload}`
  static let headersAndPayload = RecordTemplate(pieces: [.headers, .text([UInt8(ascii: "\t")]), .payload])

  private init(pieces: [Piece]) { self.pieces = pieces }

  /// Reads a template. `\n`, `\t`, `\0` and `\\` mean what they mean in C; `{{` and `}}` are braces.
  init(parsing text: String) throws(ValueError) {
    var rest = text[...]
    var plain: [UInt8] = []
    func closePlain(_ pieces: inout [Piece]) {
      if !plain.isEmpty { pieces.append(.text(plain)) }
      plain = []
    }
    while let letter = rest.popFirst() {
      switch letter {
      case "{" where rest.first == "{", "}" where rest.first == "}":
        rest.removeFirst()
        plain += Array(String(letter).utf8)
      case "{":
        guard let end = rest.firstIndex(of: "}") else {
          throw ValueError("'\(text)': a '}' is missing; write {{ for a brace")
        }
        closePlain(&pieces)
        pieces.append(try Self.piece(String(rest[..<end])))
        rest = rest[rest.index(after: end)...]
      case "}":
        throw ValueError("'\(text)': there is a '}' without a '{'; write }} for a brace")
      case "\\":
        switch rest.popFirst() {
        case "n": plain.append(UInt8(ascii: "\n"))
        case "t": plain.append(UInt8(ascii: "\t"))
        case "0": plain.append(0)
        case "\\": plain.append(UInt8(ascii: "\\"))
        case let other:
          throw ValueError(
            "'\(text)': '\\\(other.map(String.init) ?? "")' isn't an escape; there are \\n \\t \\0 \\\\")
        }
      default:
        plain += Array(String(letter).utf8)
      }
    }
    closePlain(&pieces)
  }

  private static func piece(_ name: String) throws(ValueError) -> Piece {
    switch name {
    case "topic": return .topic
    case "offset": return .offset
    case "time": return .time
    case "key": return .key
    case "headers": return .headers
    case "size": return .size
    case "deliveries": return .deliveries
    case "payload": return .payload
    default:
      if name.hasPrefix("header:"), name.count > "header:".count {
        return .header(String(name.dropFirst("header:".count)))
      }
      if let nearest = Spelling.nearest(to: name, in: names) {
        throw ValueError("there is no {\(name)}; did you mean {\(nearest)}?")
      }
      throw ValueError("there is no {\(name)}; there are \(names.map { "{\($0)}" }.joined(separator: " "))")
    }
  }

  /// Writes the record's line, with its line break. Parts that the record lacks are empty.
  func append(_ record: RecordParts, to output: inout [UInt8]) {
    for piece in pieces {
      switch piece {
      case .text(let text): output += text
      case .topic: output.append(contentsOf: record.topic.utf8)
      case .offset: Decimal.append(record.offset, to: &output)
      case .time: output.append(contentsOf: WallTime.format(record.time).utf8)
      case .key: if let key = record.key { output += key }
      case .headers:
        for (index, header) in record.headers.enumerated() {
          if index > 0 { output.append(UInt8(ascii: " ")) }
          output.append(contentsOf: header.name.utf8)
          output.append(UInt8(ascii: "="))
          output += header.value
        }
      case .header(let name):
        if let header = record.headers.first(where: { $0.name == name }) { output += header.value }
      case .size: unsafe Decimal.append(UInt64(record.size ?? record.payload.count), to: &output)
      case .deliveries:
        if let deliveries = record.deliveries { Decimal.append(UInt64(deliveries), to: &output) }
      case .payload: unsafe output.append(contentsOf: record.payload)
      }
    }
    output.append(UInt8(ascii: "\n"))
  }
}
