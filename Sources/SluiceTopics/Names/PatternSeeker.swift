import SluiceWire

/// Finds the names that a pattern selects among names in byte order, and which names in between can be skipped.
///
/// The caller visits names in order; ``judge(_:)`` returns how to continue after each. A search therefore takes time in proportion to the selected names and
/// the different tokens at wildcards, not to all names.
///
/// ```
/// orders.*.new    orders.eu.fix ─┐ seek orders.eu.new        orders.eu.new ─┐ seek orders.eu/, behind all of orders.eu
///                                └──────────────────────────►               └───────────────────►
/// ```
struct PatternSeeker: Sendable {
  enum Verdict: Hashable, Sendable {
    /// The pattern selects the name. Continue with the next name.
    case selected
    /// Not selected. Continue with the next name.
    case next
    /// Neither this name is selected nor any other before ``target``, which follows it.
    case seek
    /// Neither this name is selected nor any that follows.
    case end
  }

  private enum Token {
    /// Selected names have exactly these bytes.
    case exact([UInt8])
    case any
  }

  private let pattern: TopicPattern
  private let tokens: [Token]
  /// Whether one or more tokens follow.
  private let hasRest: Bool
  private let startsWithWildcard: Bool
  /// Whether names with matching tokens must still be compared with the pattern, because some characters have several encodings.
  private let mustCompare: Bool
  /// The name to continue with, in UTF-8, after ``Verdict/seek``.
  private(set) var target: [UInt8] = []

  init(_ pattern: TopicPattern) {
    self.pattern = pattern
    var parts = pattern.description.utf8.split(separator: Self.dot, omittingEmptySubsequences: false)
      .map { Array($0) }
    startsWithWildcard = parts[0] == Self.wildcard || parts[0] == Self.rest
    hasRest = parts.last == Self.rest
    if hasRest { parts.removeLast() }
    tokens = parts.map { part in
      part != Self.wildcard && part.allSatisfy(Self.isWrittenInOneWay) ? .exact(part) : .any
    }
    mustCompare = parts.contains { $0 != Self.wildcard && !$0.allSatisfy(Self.isWrittenInOneWay) }
  }

  /// Whether selected names have exactly this byte. Characters beyond ASCII and these three ASCII characters have canonical equivalents, such as the Kelvin
  /// sign.
  private static func isWrittenInOneWay(_ byte: UInt8) -> Bool {
    byte < 0x80 && !"K;`".utf8.contains(byte)
  }

  /// Returns how to continue after a name, which must be valid.
  mutating func judge(_ name: String) -> Verdict {
    let verdict = unsafe name.utf8.withContiguousStorageIfAvailable { unsafe judge($0) } ?? judgeCopy(name)
    return verdict == .selected && mustCompare && !pattern.selects(name) ? .next : verdict
  }

  private mutating func judgeCopy(_ name: String) -> Verdict {
    let bytes = Array(name.utf8)
    return unsafe bytes.withUnsafeBufferPointer { unsafe judge($0) }
  }

  private mutating func judge(_ name: UnsafeBufferPointer<UInt8>) -> Verdict {
    if startsWithWildcard, let verdict = unsafe judgePrivate(name) { return verdict }
    var start = 0
    // Where the token at the last wildcard ends.
    var wildcardEnd: Int?
    for (index, token) in tokens.enumerated() {
      let end = unsafe name[start...].firstIndex(of: Self.dot) ?? name.count
      let needsMore = index < tokens.count - 1 || hasRest
      if case .exact(let literal) = token {
        let rest = unsafe UnsafeBufferPointer(rebasing: name[start...])
        let isHere = unsafe end - start == literal.count && rest.starts(with: literal)
        guard isHere else {
          if unsafe rest.lexicographicallyPrecedes(literal) { return unsafe seek(name[..<start], literal) }
          // Tokens that only begin with this one may precede names below it, which continue with the dot.
          if needsMore, unsafe rest.lexicographicallyPrecedes(literal + [Self.dot]) {
            return unsafe seek(name[..<start], literal + [Self.dot])
          }
          return unsafe exhausted(name, wildcardEnd)
        }
      } else {
        wildcardEnd = end
      }
      guard end < name.count else {
        if !needsMore { return .selected }
        // Other tokens with this prefix precede the names below it.
        if case .any = token { return .next }
        return unsafe seek(name[...], [Self.dot])
      }
      if !needsMore { return unsafe exhausted(name, wildcardEnd) }
      start = end + 1
    }
    return .selected
  }

  /// Skips all names at once that a leading wildcard doesn't select.
  private mutating func judgePrivate(_ name: UnsafeBufferPointer<UInt8>) -> Verdict? {
    if unsafe name.first == UInt8(ascii: "$") {
      target = [UInt8(ascii: "$") + 1]
      return .seek
    }
    let inbox = TopicName.inboxPrefix.utf8
    if unsafe name.starts(with: inbox) {
      target = Array(inbox.dropLast()) + [Self.behindDot]
      return .seek
    }
    return unsafe name.elementsEqual(inbox.dropLast()) ? .next : nil
  }

  /// Skips all names with the same token at the last wildcard, since no more of them are selected.
  private mutating func exhausted(_ name: UnsafeBufferPointer<UInt8>, _ wildcardEnd: Int?) -> Verdict {
    guard let wildcardEnd else { return .end }
    return unsafe seek(name[..<wildcardEnd], [Self.behindDot])
  }

  private mutating func seek(_ prefix: Slice<UnsafeBufferPointer<UInt8>>, _ rest: [UInt8]) -> Verdict {
    target.removeAll(keepingCapacity: true)
    unsafe target.append(contentsOf: prefix)
    target.append(contentsOf: rest)
    return .seek
  }

  private static let wildcard = Array("*".utf8)
  private static let rest = Array(">".utf8)
  private static let dot = UInt8(ascii: ".")
  private static let behindDot = dot + 1
}
