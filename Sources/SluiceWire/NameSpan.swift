/// Names that stand together in byte order: from `first` on, before `end`.
///
/// So the cost of a search by pattern depends on the matching names, not on the other ones.
public struct NameSpan: Hashable, Sendable {
  public var first: String
  /// The first name after them; nil if there is none.
  public var end: String?

  public init(first: String, end: String?) {
    self.first = first
    self.end = end
  }

  /// All names.
  public static let all = NameSpan(first: "", end: nil)

  /// The same names in spans that are in order and apart from each other.
  public static func merged(_ spans: some Sequence<NameSpan>) -> [NameSpan] {
    var merged: [NameSpan] = []
    for span in spans.sorted(by: { precedes($0.first, $1.first) }) {
      guard let last = merged.last, !last.isBefore(span.first) else {
        merged.append(span)
        continue
      }
      guard let end = last.end else { break }
      if span.end.map({ precedes(end, $0) }) ?? true { merged[merged.count - 1].end = span.end }
    }
    return merged
  }

  /// Whether all of them come before `name`.
  public func isBefore(_ name: String) -> Bool { end.map { !Self.precedes(name, $0) } ?? false }

  /// The order of topics in lists: that of their bytes.
  public static func precedes(_ left: String, _ right: String) -> Bool {
    left.utf8.lexicographicallyPrecedes(right.utf8)
  }
}

extension TopicPattern {
  /// The span of all names that it matches; others may be among them.
  public var span: NameSpan {
    var literals: [Substring] = []
    for case .literal(let literal) in tokens.prefix(while: Self.isWrittenInOneWay) {
      literals.append(literal)
    }
    let start = literals.joined(separator: ".")
    if literals.count == tokens.count { return NameSpan(first: start, end: start + "\0") }
    return start.isEmpty ? .all : NameSpan(first: start + ".", end: start + "/")
  }

  /// Whether names that are matched have these very bytes there. Other characters may be canonically equivalent: to ASCII's, these three have such,
  /// like the Kelvin sign.
  private static func isWrittenInOneWay(_ token: Token) -> Bool {
    guard case .literal(let text) = token else { return false }
    return text.utf8.allSatisfy { $0 < 0x80 && !"K;`".utf8.contains($0) }
  }
}
