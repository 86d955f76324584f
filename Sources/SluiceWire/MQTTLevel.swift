/// A level of an MQTT name, and the equivalent token of a broker's name. The mapping is one-to-one, so no name is lost or used twice.
///
/// Most are the same text. A character that only one side allows is written on the other side as `%` and the hexadecimal digits of its bytes in UTF-8:
///
/// | level | token | |
/// |---|---|---|
/// | `Living Room` | `Living%20Room` | space and control characters, `.`, `*`, `>`; `$` at the start of a name |
/// | `a%2Fb` | `a/b` | `/`, `+`, `#` |
/// | empty | `%00` | |
/// | `e` and U+0301 | `%ue%CC%81` | text that isn't composed (Normalization Form C) |
///
/// Text that looks like such an escape but isn't one gets an additional `25` after its `%` on the other side: the level `a%20` is the token `a%2520`. Any
/// other `%` is unchanged.
package struct MQTTLevel {
  /// Whether the level is the first of its name: `$` is special there.
  package let isFirst: Bool

  package init(isFirst: Bool) { self.isFirst = isFirst }

  private enum Notation {
    case level
    case token
  }

  private static let percent: Unicode.Scalar = "%"

  // MARK: The two directions

  /// The token for a level.
  package func token(of level: Substring) -> String {
    if Self.isPlain(level) { return String(level) }
    if level.isEmpty { return Self.emptyToken }
    let scalars = Array(level.unicodeScalars)
    if let token = countedEmpty(scalars, change: 1) { return token }
    let text = String(level)
    guard let token = composedToken(of: text) else { return Self.bytesToken(text) }
    return isOfBytes(token) ? "%25" + token.dropFirst() : token
  }

  /// The level that a token stands for.
  package func level(of token: Substring) -> String {
    if Self.isPlain(token) { return String(token) }
    if token == Self.emptyToken { return "" }
    var token = String(token)
    if let level = countedEmpty(Array(token.unicodeScalars), change: -1) { return level }
    if isOfBytes(token) {
      if let level = bytesLevel(token) { return level }
      token = "%" + token.dropFirst(3)
    }
    return converted(Array(token.unicodeScalars), to: .level)
  }

  // MARK: Characters

  /// Whether the text has only letters, digits and other characters that are the same on both sides.
  private static func isPlain(_ text: Substring) -> Bool {
    !text.isEmpty
      && text.utf8.allSatisfy { byte in
        switch byte {
        case 0x21...0x7E: !"%.*>/+#$".utf8.contains(byte)
        default: false
        }
      }
  }

  /// The only side that allows a character; nil if both or neither do.
  ///
  /// - Parameters:
  ///   - isAtStart: whether it is the first character of its level.
  ///   - next: the next character.
  private func onlyNotation(
    of scalar: Unicode.Scalar, isAtStart: Bool, before next: Unicode.Scalar?
  ) -> Notation? {
    switch scalar {
    case "/", "+", "#": .token
    // Together with the following stroke, it isn't composed.
    case ">": next == "\u{338}" ? nil : .level
    case ".", "*": .level
    case "$": isFirst && isAtStart ? .level : nil
    // Composed text has other spaces instead.
    case "\0", "\u{2000}", "\u{2001}": nil
    default: TopicName.isVisible(scalar) ? nil : .level
    }
  }

  private func converted(_ scalars: [Unicode.Scalar], to side: Notation) -> String {
    var result = ""
    var place = 0
    while place < scalars.count {
      let scalar = scalars[place]
      let next = place + 1 < scalars.count ? scalars[place + 1] : nil
      let only = onlyNotation(of: scalar, isAtStart: place == 0, before: next)
      if let only, only != side {
        Self.escape(scalar, into: &result)
      } else if scalar == Self.percent, let escape = escape(in: scalars, at: place) {
        let isOwn = escape.side == side
        if isOwn, escape.marks == 0 {
          result.unicodeScalars.append(escape.scalar)
        } else {
          result += "%" + String(repeating: "25", count: escape.marks + (isOwn ? -1 : 1)) + escape.code
        }
        place = escape.end
        continue
      } else {
        result.unicodeScalars.append(scalar)
      }
      place += 1
    }
    return result
  }

  private static func escape(_ scalar: Unicode.Scalar, into text: inout String) {
    for byte in String(scalar).utf8 { text += "%" + hex(byte) }
  }

  private static func hex(_ byte: UInt8) -> String {
    let digits = String(byte, radix: 16, uppercase: true)
    return byte < 16 ? "0" + digits : digits
  }

  // MARK: Escapes

  private struct Escape {
    /// The character that it stands for, and the side that allows it.
    var scalar: Unicode.Scalar
    var side: Notation
    /// The number of `25` before its digits.
    var marks: Int
    /// The digits after `%` and these.
    var code: String
    /// The index after it.
    var end: Int
  }

  /// The escape that begins with the `%` at `start`; nil if there is none.
  private func escape(in scalars: [Unicode.Scalar], at start: Int) -> Escape? {
    let (marks, place) = Self.marks(in: scalars, from: start + 1)
    guard let first = Self.byte(in: scalars, at: place) else { return nil }
    var (bytes, end, code) = ([first], place + 2, Self.hex(first))
    for _ in 1..<max(1, (~first).leadingZeroBitCount) {
      guard end < scalars.count, scalars[end] == Self.percent,
        let byte = Self.byte(in: scalars, at: end + 1)
      else { return nil }
      bytes.append(byte)
      code += "%" + Self.hex(byte)
      end += 3
    }
    guard let text = String(validating: bytes, as: UTF8.self), let scalar = text.unicodeScalars.first,
      let side = onlyNotation(
        of: scalar, isAtStart: start == 0, before: end < scalars.count ? scalars[end] : nil)
    else { return nil }
    return Escape(scalar: scalar, side: side, marks: marks, code: code, end: end)
  }

  /// The number of `25` that follow, and the index after them.
  private static func marks(in scalars: [Unicode.Scalar], from start: Int) -> (count: Int, end: Int) {
    var place = start
    while place + 1 < scalars.count, scalars[place] == "2", scalars[place + 1] == "5" { place += 2 }
    return ((place - start) / 2, place)
  }

  /// Two hexadecimal digits, with capital letters.
  private static func byte(in scalars: [Unicode.Scalar], at place: Int) -> UInt8? {
    guard place + 1 < scalars.count else { return nil }
    let digits = scalars[place...place + 1]
    guard digits.allSatisfy({ ("0"..."9").contains($0) || ("A"..."F").contains($0) }) else { return nil }
    return UInt8(String(String.UnicodeScalarView(digits)), radix: 16)
  }

  // MARK: The empty level

  private static let emptyToken = "%00"

  /// For a level that looks like the token for an empty one, or the token for such a level: the text with one `25` more or less. Nil for any other text.
  private func countedEmpty(_ scalars: [Unicode.Scalar], change: Int) -> String? {
    guard scalars.first == Self.percent, scalars.suffix(2) == ["0", "0"] else { return nil }
    let (marks, end) = Self.marks(in: scalars, from: 1)
    guard end == scalars.count - 2, marks + change >= 0 else { return nil }
    return "%" + String(repeating: "25", count: marks + change) + "00"
  }

  // MARK: Text that isn't composed

  private static let bytesMark = "%u"
  /// No level contains these characters.
  private static let absent = Array("/+#\0".utf8)

  /// The token for a level that is converted character by character; nil if the level or that token isn't composed.
  private func composedToken(of level: String) -> String? {
    guard TopicName.isComposed(level) else { return nil }
    let token = converted(Array(level.unicodeScalars), to: .token)
    return TopicName.isComposed(token) ? token : nil
  }

  /// The token that contains the bytes of all characters except plain ASCII.
  private static func bytesToken(_ level: String) -> String {
    var token = bytesMark
    for scalar in level.unicodeScalars {
      if isPlain(Substring(String(scalar))) {
        token.unicodeScalars.append(scalar)
      } else {
        escape(scalar, into: &token)
      }
    }
    return token
  }

  /// Whether it is a token of ``bytesToken(_:)``, or differs from one only in `25` after its `%`.
  private func isOfBytes(_ token: String) -> Bool {
    let scalars = Array(token.unicodeScalars)
    guard scalars.first == Self.percent else { return false }
    let (_, end) = Self.marks(in: scalars, from: 1)
    return bytesLevel("%" + String(String.UnicodeScalarView(scalars[end...]))) != nil
  }

  /// The level of a token from ``bytesToken(_:)``; nil for any other token.
  private func bytesLevel(_ token: String) -> String? {
    guard token.utf8.starts(with: Self.bytesMark.utf8) else { return nil }
    let scalars = Array(token.unicodeScalars.dropFirst(2))
    var bytes: [UInt8] = []
    var place = 0
    while place < scalars.count {
      if scalars[place] == Self.percent {
        guard let byte = Self.byte(in: scalars, at: place + 1) else { return nil }
        bytes.append(byte)
        place += 3
      } else {
        bytes += String(scalars[place]).utf8
        place += 1
      }
    }
    guard !bytes.contains(where: Self.absent.contains), let level = String(validating: bytes, as: UTF8.self),
      Self.bytesToken(level) == token, composedToken(of: level) == nil
    else { return nil }
    return level
  }
}
