import CTOML

/// A place in a file. Both numbers begin at 1; 0 if the place isn't known.
struct TOMLPlace: Hashable, Comparable {
  var line = 0
  var column = 0

  static func < (left: Self, right: Self) -> Bool { (left.line, left.column) < (right.line, right.column) }
}

/// A syntax error and its place.
struct TOMLError: Error, Hashable {
  var message: String
  var place: TOMLPlace
}

/// The contents of a file in TOML as a flat list: containers refer to their entries by index.
struct TOMLDocument {
  /// The raw values are used in messages.
  enum Kind: String {
    case table = "a section"
    case array = "a list"
    case text = "a text"
    case integer = "a whole number"
    case float = "a number with a fraction"
    case boolean = "true or false"
    case time = "a time"
  }

  struct Entry: Hashable {
    /// Empty for an element of an array.
    var key: String
    var kind: Kind
    /// The text of strings, integers and booleans.
    var text: String
    /// The place of the key; for an element of an array, the place of the value.
    var place: TOMLPlace
    /// The entries in it, in the order of the file.
    var children: [Int] = []
  }

  private(set) var entries: [Entry] = []
  /// The entries before all sections, and the sections, in the order of the file.
  private(set) var top: [Int] = []

  /// - Throws: ``TOMLError`` for the first syntax error.
  init(parsing bytes: [UInt8]) throws(TOMLError) {
    let parsed = unsafe bytes.withUnsafeBytes {
      unsafe ctoml_parse($0.baseAddress?.assumingMemoryBound(to: CChar.self), $0.count)
    }
    guard let document = unsafe parsed else {
      throw TOMLError(message: "there isn't enough memory to read it", place: TOMLPlace())
    }
    defer { unsafe ctoml_free(document) }
    var (line, column): (UInt32, UInt32) = (0, 0)
    if let message = unsafe ctoml_error(document, &line, &column) {
      let place = TOMLPlace(line: Int(line), column: Int(column))
      throw TOMLError(message: Self.explained(unsafe String(cString: message)), place: place)
    }
    for index in unsafe 0..<ctoml_count(document) {
      let entry = unsafe ctoml_entry_at(document, index)
      let place = unsafe TOMLPlace(line: Int(entry.line), column: Int(entry.column))
      unsafe entries.append(
        Entry(
          key: Self.text(entry.key, entry.key_length), kind: Self.kind(entry.kind),
          text: Self.text(entry.text, entry.text_length), place: place))
      // A container precedes its entries.
      let parent = unsafe Int(entry.parent)
      if parent < 0 { top.append(index) } else { entries[parent].children.append(index) }
    }
    top = sorted(top)
    for index in entries.indices { entries[index].children = sorted(entries[index].children) }
  }

  private func sorted(_ numbers: [Int]) -> [Int] {
    numbers.sorted { (entries[$0].place, $0) < (entries[$1].place, $1) }
  }

  private static func text(_ bytes: UnsafePointer<CChar>?, _ count: Int) -> String {
    unsafe String(
      decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
  }

  private static func kind(_ number: Int32) -> Kind {
    switch Int(number) {
    case Int(CTOML_TABLE): .table
    case Int(CTOML_ARRAY): .array
    case Int(CTOML_STRING): .text
    case Int(CTOML_INTEGER): .integer
    case Int(CTOML_FLOAT): .float
    case Int(CTOML_BOOLEAN): .boolean
    default: .time
    }
  }

  /// Removes the parser's state from its message, and adds advice.
  private static func explained(_ words: String) -> String {
    var message = words
    if words.hasPrefix("Error while parsing "), let colon = words.firstRange(of: ": ") {
      message = String(words[colon.upperBound...])
    }
    // The parser's compile-time settings mean nothing to an operator.
    if let bracket = message.firstRange(of: " (TOML_") { message = String(message[..<bracket.lowerBound]) }
    if message.hasPrefix("cannot redefine") { return message + "; write each key and each section once" }
    if words.contains("could not determine value type") || words.contains("expected digit")
      || words.contains("parsing time")
    {
      return message + "; a text needs quotes, like \"64MiB\""
    }
    return message
  }
}

/// Parses TOML beyond syntax errors, so that all of them can be reported at once.
///
/// The parser stops at the first error. If the line with the error isn't valid TOML by itself, or repeats a key, it is removed, and the rest is parsed
/// again. If it is valid by itself, the cause is in an earlier line, and parsing ends there.
struct TOMLRecovery {
  /// The most errors to collect.
  static let most = 50

  /// The readable part; nil when there is none.
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
        guard removeFault(error) else { return }
      }
    }
  }

  /// Removes the line with an error, together with the lines that belong to it. Returns false if that line isn't known.
  private mutating func removeFault(_ error: TOMLError) -> Bool {
    let index = error.place.line - 1
    guard lines.indices.contains(index), !Self.isBlank(lines[index]) else { return false }
    let line = lines[index]
    let isRepeated = error.message.hasPrefix("cannot redefine")
    let isFaulty = isRepeated || (try? TOMLDocument(parsing: line)) == nil
    guard isFaulty else {
      // An earlier list or text has no end: the document ends before it.
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
      // Without the heading, its keys would belong to the section before.
      for other in lines.indices.dropFirst(index + 1) {
        if Self.isHeading(lines[other]) { break }
        lines[other] = []
      }
    } else {
      // A list that begins here may continue in the next lines.
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

  /// The number of brackets that a line opens minus those that it closes, outside of texts and comments.
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
