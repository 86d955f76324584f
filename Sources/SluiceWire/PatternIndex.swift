/// Patterns with a value each, found by the names that they select. The time depends on the tokens of the name and on the patterns that begin
/// like it, not on the number of patterns.
///
/// A tree of tokens. Patterns may be there many times, each under a number of its own.
///
/// ```
/// orders.*        ─┬─ orders ─┬─ *  ── 1
/// orders.eu.>      │          └─ eu ── > ── 2
/// *.eu            ─┴─ *  ───────  eu ── 3
/// ```
public struct PatternIndex<Value> {
  fileprivate struct Node {
    /// The subtrees by token; wildcards, which no name contains, are among them.
    var branches: [Substring: Node] = [:]
    /// The patterns that end here, by number.
    var values: [UInt64: Value] = [:]

    var isEmpty: Bool { branches.isEmpty && values.isEmpty }
  }

  private var root = Node()
  public private(set) var count = 0

  public init() {}

  /// Enters a pattern under a number that it doesn't have yet.
  public mutating func insert(_ pattern: TopicPattern, number: UInt64, _ value: Value) {
    Self.insert(pattern.tokens[...], number, value, into: &root)
    count += 1
  }

  /// Takes out what was entered for the pattern under this number.
  public mutating func remove(_ pattern: TopicPattern, number: UInt64) {
    if Self.remove(pattern.tokens[...], number, from: &root) { count -= 1 }
  }

  /// The values of the patterns that select `name`, a valid one, in the order of their numbers.
  public func values(selecting name: String) -> [Value] {
    guard count > 0 else { return [] }
    var found: [(number: UInt64, value: Value)] = []
    let tokens = TopicName.tokens(name)
    Self.visit(root, tokens[...], withWildcards: !TopicName.isPrivate(name)) { values in
      for (number, value) in values { found.append((number, value)) }
    }
    if found.count > 1 { found.sort { $0.number < $1.number } }
    return found.map(\.value)
  }

  private static func insert(
    _ tokens: ArraySlice<TopicPattern.Token>, _ number: UInt64, _ value: Value, into node: inout Node
  ) {
    guard let token = tokens.first else { return node.values[number] = value }
    insert(tokens.dropFirst(), number, value, into: &node.branches[token.text, default: Node()])
  }

  private static func remove(
    _ tokens: ArraySlice<TopicPattern.Token>, _ number: UInt64, from node: inout Node
  ) -> Bool {
    guard let token = tokens.first else { return node.values.removeValue(forKey: number) != nil }
    guard let index = node.branches.index(forKey: token.text) else { return false }
    let isRemoved = remove(tokens.dropFirst(), number, from: &node.branches.values[index])
    if node.branches.values[index].isEmpty { node.branches.remove(at: index) }
    return isRemoved
  }

  private static func visit(
    _ node: Node, _ tokens: ArraySlice<Substring>, withWildcards: Bool, _ body: ([UInt64: Value]) -> Void
  ) {
    guard let token = tokens.first else { return body(node.values) }
    let rest = tokens.dropFirst()
    if let branch = node.branches[token] { visit(branch, rest, withWildcards: true, body) }
    guard withWildcards else { return }
    if let branch = node.branches["*"] { visit(branch, rest, withWildcards: true, body) }
    if let branch = node.branches[">"] { body(branch.values) }
  }
}

extension PatternIndex: Sendable where Value: Sendable {}
extension PatternIndex.Node: Sendable where Value: Sendable {}

extension TopicPattern.Token {
  fileprivate var text: Substring {
    switch self {
    case .literal(let text): text
    case .any: "*"
    case .rest: ">"
    }
  }
}
