/// A pattern of topics' names: tokens as in a name, of which `*` stands for any one token, and a last `>` for one or more.
///
/// A name without either is a pattern that matches itself.
public struct TopicPattern: Hashable, Sendable, CustomStringConvertible {
  enum Token: Hashable, Sendable {
    case literal(Substring)
    /// `*`
    case any
    /// `>`
    case rest
  }

  public let description: String

  /// - Throws: ``ErrorCode/invalidTopic`` with what is wrong.
  public init(_ text: String) throws(WireError) {
    if PlainName.isPattern(text) {
      description = text
      return
    }
    let parts = TopicName.tokens(text)
    // With its wildcards replaced a pattern is a name, and has a name's rules.
    var name = parts
    for (index, part) in parts.enumerated() {
      switch part {
      case "*": name[index] = "x"
      case ">":
        guard index == parts.count - 1 else {
          throw WireError(
            .invalidTopic,
            "\"\(ShownText.line(text, limit: 64))\" isn't a pattern: > can only be its last token")
        }
        name[index] = "x"
      default: break
      }
    }
    try TopicName.validate(name.joined(separator: "."))
    description = text
  }

  /// The parts between the dots. Computed on request: since there may be many patterns, a pattern holds its text only.
  var tokens: [Token] {
    TopicName.tokens(description).map {
      switch $0 {
      case "*": .any
      case ">": .rest
      default: .literal($0)
      }
    }
  }

  /// Whether a text is meant as a pattern of several names, be it a valid one or not: no name has these characters.
  package static func hasWildcards(_ text: String) -> Bool {
    text.utf8.contains { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: ">") }
  }

  /// Whether it may match more than one name.
  public var hasWildcards: Bool { Self.hasWildcards(description) }

  /// Whether it stands for `name`, which must be a valid one.
  public func matches(_ name: String) -> Bool {
    if let answer = Self.compareASCII(description, name) { return answer }
    let (parts, tokens) = (TopicName.tokens(name), tokens)
    for (index, token) in tokens.enumerated() {
      guard index < parts.count else { return false }
      switch token {
      case .literal(let literal): if literal != parts[index] { return false }
      case .any: break
      case .rest: return true
      }
    }
    return parts.count == tokens.count
  }

  /// Whether a subscription to the pattern is one to the topic of that name: as ``matches(_:)``, except that a wildcard that comes first
  /// doesn't select private names.
  ///
  /// These are the names whose first token starts with `$`, or is `_inbox`, where answers to requests go.
  public func selects(_ name: String) -> Bool {
    // Neither byte can stand in a name.
    let first = description.utf8.first
    let beginsWithWildcard = first == UInt8(ascii: "*") || first == UInt8(ascii: ">")
    return matches(name) && !(beginsWithWildcard && TopicName.isPrivate(name))
  }

  /// The shortest name that both patterns select; nil if there is none.
  package func commonName(with other: TopicPattern) -> String? {
    // Most patterns that an identity may have differ from the other one in a token. That is found without memory of its own.
    guard Self.agree(description.utf8, other.description.utf8) else { return nil }
    let both = [tokens, other.tokens]
    let length = both.map(\.count).max() ?? 0
    let name = (0..<length).map { index -> Substring in
      for tokens in both where index < tokens.count {
        if case .literal(let text) = tokens[index] { return text }
      }
      return "x"
    }.joined(separator: ".")
    guard (try? TopicName.validate(name)) != nil, selects(name), other.selects(name) else { return nil }
    return name
  }

  /// Whether no literal token of one pattern stands where another one of the other does.
  private static func agree(_ left: String.UTF8View, _ right: String.UTF8View) -> Bool {
    let (dot, star, rest) = (UInt8(ascii: "."), UInt8(ascii: "*"), UInt8(ascii: ">"))
    var (left, right) = (left[...], right[...])
    while let first = left.first, let second = right.first {
      if first == rest || second == rest { return true }
      let (own, others) = (left.prefix { $0 != dot }, right.prefix { $0 != dot })
      guard first == star || second == star || own.elementsEqual(others) else { return false }
      left = left[own.endIndex...].dropFirst()
      right = right[others.endIndex...].dropFirst()
    }
    return left.isEmpty && right.isEmpty
  }

  /// The answer for two texts of ASCII, byte by byte; nil when one of them has other characters, of which several may be the same.
  private static func compareASCII(_ pattern: String, _ name: String) -> Bool? {
    let answer: Bool?? = unsafe pattern.utf8.withContiguousStorageIfAvailable { pattern in
      unsafe name.utf8.withContiguousStorageIfAvailable { unsafe compareASCII(pattern, $0) } ?? nil
    }
    return answer ?? nil
  }

  private static func compareASCII(
    _ pattern: UnsafeBufferPointer<UInt8>, _ name: UnsafeBufferPointer<UInt8>
  ) -> Bool? {
    let (dot, star, rest) = (UInt8(ascii: "."), UInt8(ascii: "*"), UInt8(ascii: ">"))
    var next = 0
    for place in 0..<pattern.count {
      let byte = unsafe pattern[place]
      switch byte {
      // Neither can stand in a name.
      case star:
        while next < name.count, unsafe name[next] != dot {
          if unsafe name[next] >= 0x80 { return nil }
          next += 1
        }
      case rest: return true
      default:
        guard byte < 0x80 else { return nil }
        guard next < name.count else { return false }
        guard unsafe name[next] == byte else { return unsafe name[next] < 0x80 ? false : nil }
        next += 1
      }
    }
    if next < name.count, unsafe name[next] >= 0x80 { return nil }
    return next == name.count
  }
}
