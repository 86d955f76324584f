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

  let tokens: [Token]
  public let description: String

  /// - Throws: ``ErrorCode/invalidTopic`` with what is wrong.
  public init(_ text: String) throws(WireError) {
    var tokens: [Token] = []
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    // With its wildcards replaced a pattern is a name, and has a name's rules.
    var name = parts
    for (index, part) in parts.enumerated() {
      switch part {
      case "*":
        tokens.append(.any)
        name[index] = "x"
      case ">":
        guard index == parts.count - 1 else {
          throw WireError(
            .invalidTopic, "\"\(Self.shown(text))\" isn't a pattern: > can only be its last token")
        }
        tokens.append(.rest)
        name[index] = "x"
      default: tokens.append(.literal(part))
      }
    }
    try TopicName.validate(name.joined(separator: "."))
    self.tokens = tokens
    description = text
  }

  /// Whether it may match more than one name.
  public var hasWildcards: Bool {
    tokens.contains { if case .literal = $0 { false } else { true } }
  }

  public func matches(_ name: String) -> Bool {
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
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

  private static func shown(_ text: String) -> String {
    String(
      text.unicodeScalars.prefix(64).map { $0.properties.generalCategory == .control ? "?" : Character($0) })
  }
}
