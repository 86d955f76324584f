/// A text in TOML, read past its mistakes, so that all of them can be told at once.
///
/// The parser stops at the first mistake. A line that isn't TOML by itself, or that says something for the second time, is taken out, and the rest
/// is read again. A mistake in a line that is TOML by itself has its cause before it: what follows can't be told from it, and isn't looked at.
struct TOMLRecovery {
  /// The most mistakes that are looked for.
  static let most = 50

  /// What could be read; nil when nothing could.
  private(set) var document: TOMLDocument?
  /// In the order in which they were found.
  private(set) var errors: [TOMLError] = []

  private var lines: [[UInt8]]

  init(_ bytes: [UInt8]) {
    lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { Array($0) }
    while errors.count < Self.most {
      do {
        document = try TOMLDocument(parsing: Array(lines.joined(separator: [UInt8(ascii: "\n")])))
        return
      } catch {
        errors.append(error)
        guard takeOut(error) else { return }
      }
    }
  }

  /// Takes out what the parser stumbled over. Returns false when that isn't known.
  private mutating func takeOut(_ error: TOMLError) -> Bool {
    let index = error.place.line - 1
    guard lines.indices.contains(index), !Self.isBlank(lines[index]) else { return false }
    let line = lines[index]
    let isRepeated = error.message.hasPrefix("cannot redefine")
    let isFaulty = isRepeated || (try? TOMLDocument(parsing: line)) == nil
    guard isFaulty else {
      // What began before it isn't told either: a list, or a text, that doesn't end.
      for end in stride(from: index, to: max(index - Self.most, 0), by: -1) {
        let before = Array(lines[..<end].joined(separator: [UInt8(ascii: "\n")]))
        if let document = try? TOMLDocument(parsing: before) {
          self.document = document
          break
        }
      }
      return false
    }
    lines[index] = []
    if Self.isHeading(line) {
      // The keys behind it would be taken for those of the section before.
      for other in lines.indices.dropFirst(index + 1) {
        if Self.isHeading(lines[other]) { break }
        lines[other] = []
      }
    } else {
      // A list that begins here may go on.
      var depth = Self.openBrackets(line)
      for other in lines.indices.dropFirst(index + 1) where depth > 0 {
        depth += Self.openBrackets(lines[other])
        lines[other] = []
      }
    }
    return true
  }

  private static func isBlank(_ line: [UInt8]) -> Bool { line.allSatisfy { isSpace($0) } }

  private static func isHeading(_ line: [UInt8]) -> Bool {
    line.first { !isSpace($0) } == UInt8(ascii: "[")
  }

  private static func isSpace(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r")
  }

  /// How many brackets a line opens more than it closes, outside of texts and comments.
  private static func openBrackets(_ line: [UInt8]) -> Int {
    var depth = 0
    var quote: UInt8?
    var isEscaped = false
    for byte in line {
      if let open = quote {
        if !isEscaped, byte == open { quote = nil }
        isEscaped = !isEscaped && byte == UInt8(ascii: "\\") && open == UInt8(ascii: "\"")
        continue
      }
      switch byte {
      case UInt8(ascii: "#"): return depth
      case UInt8(ascii: "\""), UInt8(ascii: "'"): quote = byte
      case UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "]"): depth -= 1
      default: break
      }
    }
    return depth
  }
}
