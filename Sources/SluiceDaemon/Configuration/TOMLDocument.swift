import CTOML

/// A place in a file, both numbers from 1 on; 0 where it isn't known.
struct TOMLPlace: Hashable, Comparable {
  var line = 0
  var column = 0

  static func < (left: Self, right: Self) -> Bool { (left.line, left.column) < (right.line, right.column) }
}

/// A text that isn't TOML: what is wrong, and where.
struct TOMLError: Error, Hashable {
  var message: String
  var place: TOMLPlace
}

/// What a file in TOML contains, flat: values know those that are in them by their numbers.
struct TOMLDocument {
  enum Kind: Hashable {
    case table
    case array
    case text
    case integer
    case float
    case boolean
    case time
  }

  struct Entry: Hashable {
    /// Empty for an element of an array.
    var key: String
    var kind: Kind
    /// Of texts, integers and booleans.
    var text: String
    /// Of the key or, for an element, of the value.
    var place: TOMLPlace
    /// The entries in it, in the order of the file.
    var children: [Int] = []
  }

  private(set) var entries: [Entry] = []
  /// The entries in front of all sections, and the sections, in the order of the file.
  private(set) var top: [Int] = []

  /// - Throws: ``TOMLError`` for the first thing that can't be read.
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
      // A container stands in front of what is in it.
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

  /// The parser's words without what it was about to do, and with what helps.
  private static func explained(_ words: String) -> String {
    var message = words
    if words.hasPrefix("Error while parsing "), let colon = words.firstRange(of: ": ") {
      message = String(words[colon.upperBound...])
    }
    // Its own settings are nobody else's business.
    if let bracket = message.firstRange(of: " (TOML_") { message = String(message[..<bracket.lowerBound]) }
    if message.hasPrefix("cannot redefine") { return message + "; a key or a section is there once" }
    if words.contains("could not determine value type") || words.contains("expected digit")
      || words.contains("parsing time")
    {
      return message + "; a text needs quotes, like \"64MiB\""
    }
    return message
  }
}
