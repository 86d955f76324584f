/// A word of a line in the file of permissions.
struct PermissionWord: Equatable {
  var text: String
  var isQuoted = false

  /// The words, separated by spaces or tabs.
  static func split(_ line: Substring) throws(AccessTextError) -> [PermissionWord] {
    var words: [PermissionWord] = []
    var rest = line.utf8[...]
    while true {
      rest = rest.drop { isBlank($0) }
      guard let first = rest.first else { return words }
      if first == UInt8(ascii: "\"") {
        words.append(PermissionWord(text: try quoted(&rest), isQuoted: true))
        guard rest.first.map(isBlank) ?? true else {
          throw AccessTextError("there is no space behind the closing quotation mark")
        }
      } else {
        let word = rest.prefix { !isBlank($0) }
        guard !word.contains(UInt8(ascii: "\"")) else {
          throw AccessTextError(
            "a quotation mark in the middle of a word; put all of the word between two of them")
        }
        rest = rest.dropFirst(word.count)
        words.append(PermissionWord(text: String(Substring(word))))
      }
    }
  }

  private static func quoted(_ rest: inout Substring.UTF8View) throws(AccessTextError) -> String {
    var bytes: [UInt8] = []
    rest = rest.dropFirst()
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "\""): return String(decoding: bytes, as: UTF8.self)
      case UInt8(ascii: "\\"):
        guard let next = rest.popFirst(), next == UInt8(ascii: "\\") || next == UInt8(ascii: "\"") else {
          throw AccessTextError("a backslash can only be before a quotation mark or another backslash")
        }
        bytes.append(next)
      default: bytes.append(byte)
      }
    }
    throw AccessTextError("the closing quotation mark is missing")
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
  }
}
