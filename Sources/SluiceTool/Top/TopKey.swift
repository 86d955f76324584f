/// A key of `sluice top`.
enum TopKey: Hashable {
  case up, down, pageUp, pageDown, home, end
  case enter, escape, backspace
  case character(Character)

  /// The keys in the bytes that a terminal has sent. Unknown sequences are skipped.
  static func keys(in bytes: some Sequence<UInt8>) -> [TopKey] {
    var keys: [TopKey] = []
    var rest = Array(bytes)[...]
    while let byte = rest.popFirst() {
      switch byte {
      case 0x0A, 0x0D: keys.append(.enter)
      case 0x08, 0x7F: keys.append(.backspace)
      case 0x1B:
        guard rest.first == UInt8(ascii: "[") || rest.first == UInt8(ascii: "O") else {
          keys.append(.escape)
          continue
        }
        rest.removeFirst()
        let sequence = rest.prefix { !(0x40...0x7E).contains($0) }
        rest = rest.dropFirst(sequence.count)
        let last = rest.popFirst()
        if let key = sequences[String(decoding: Array(sequence) + [last ?? 0], as: UTF8.self)] {
          keys.append(key)
        }
      case 0x20..<0x7F: keys.append(.character(Character(Unicode.Scalar(byte))))
      default:
        // A character beyond ASCII.
        let more = rest.prefix { $0 & 0xC0 == 0x80 }
        rest = rest.dropFirst(more.count)
        if byte >= 0xC2, let text = String(validating: [byte] + more, as: UTF8.self), let first = text.first {
          keys.append(.character(first))
        }
      }
    }
    return keys
  }

  private static let sequences: [String: TopKey] = [
    "A": .up, "B": .down, "5~": .pageUp, "6~": .pageDown, "H": .home, "1~": .home, "F": .end, "4~": .end,
  ]
}
