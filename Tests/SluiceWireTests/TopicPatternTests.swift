import SluiceWire
import Testing

@Suite("Topic patterns")
struct TopicPatternTests {
  @Test(
    "match the names that they should, and no others",
    arguments: [
      ("orders", ["orders"], ["order", "orders.eu", "x.orders"]),
      ("orders.*", ["orders.eu", "orders.é"], ["orders", "orders.eu.new", "order.eu"]),
      ("*.eu", ["orders.eu", "a.eu"], ["eu", "orders.us", "a.b.eu"]),
      ("*", ["orders", "a"], ["a.b"]),
      (">", ["orders", "a.b.c"], []),
      ("orders.>", ["orders.eu", "orders.eu.new"], ["orders", "ordersx.eu"]),
      ("a.*.c.>", ["a.b.c.d", "a.x.c.d.e"], ["a.b.c", "a.b.d.e", "a.c.d"]),
      // Beyond ASCII, and a token that begins with a combining character.
      ("*.\u{e9}", ["a.\u{e9}", "\u{e9}.\u{e9}"], ["a.e", "\u{e9}"]),
      ("K.*", ["K.a", "K.\u{e9}"], ["k.a"]),
      ("a.*", ["a.\u{301}b"], ["a"]),
    ] as [(String, [String], [String])])
  func matching(pattern: String, matched: [String], others: [String]) throws {
    let parsed = try TopicPattern(pattern)
    #expect(parsed.description == pattern)
    for name in matched { #expect(parsed.matches(name), "\(name)") }
    for name in others { #expect(!parsed.matches(name), "\(name)") }
  }

  @Test(
    "select what they match, but not with a first wildcard what isn't for all clients",
    arguments: [
      (">", ["a", "_inboxes.a", "a._inbox.b"], ["_inbox.a", "_inbox", "$x.a", "_inbox.\u{301}a"]),
      ("*.a", ["_inboxes.a"], ["_inbox.a", "$x.a"]),
      ("_inbox.*", ["_inbox.a"], ["_inbox"]),
      ("a", ["a"], ["b"]),
    ] as [(String, [String], [String])])
  func selecting(pattern: String, selected: [String], others: [String]) throws {
    let parsed = try TopicPattern(pattern)
    for name in selected { #expect(parsed.selects(name), "\(name)") }
    for name in others { #expect(!parsed.selects(name), "\(name)") }
  }

  @Test("know whether they stand for more than a name")
  func wildcards() throws {
    #expect(try !TopicPattern("a.b").hasWildcards)
    #expect(try TopicPattern("a.*").hasWildcards)
    #expect(try TopicPattern(">").hasWildcards)
    for text in ["a.b", "", "caf\u{e9}", "a#.+"] { #expect(!TopicPattern.hasWildcards(text), "\(text)") }
    // Also true for invalid patterns.
    for text in ["a.*", ">", "a*", ">.a"] { #expect(TopicPattern.hasWildcards(text), "\(text)") }
  }

  @Test(
    "that aren't ones are refused",
    arguments: [
      "", ".", "a.", ".a", "a..b", ">.a", "a.>.b", "a*", "a.b>", "a b", "$x.*", "a.\n", "*.e\u{301}",
    ])
  func invalid(pattern: String) {
    #expect {
      try TopicPattern(pattern)
    } throws: { ($0 as? WireError)?.code == .invalidTopic }
  }

  @Test("match a name as an array of tokens would, whatever the names", arguments: 0..<20)
  func naive(seed: Int) throws {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<200 {
      let name = (0..<Int.random(in: 1...4, using: &random)).map { _ in ["a", "b"].randomElement()! }
      var pattern = (0..<Int.random(in: 1...4, using: &random)).map { _ in ["a", "b", "*"].randomElement()! }
      if Bool.random() { pattern.append(">") }
      #expect(
        try TopicPattern(pattern.joined(separator: ".")).matches(name.joined(separator: "."))
          == Self.matches(pattern[...], name[...]), "\(pattern) \(name)")
    }
  }

  private static func matches(_ pattern: ArraySlice<String>, _ name: ArraySlice<String>) -> Bool {
    guard let first = pattern.first else { return name.isEmpty }
    if first == ">" { return !name.isEmpty }
    guard let token = name.first, first == "*" || first == token else { return false }
    return matches(pattern.dropFirst(), name.dropFirst())
  }

  @Test("find a name that two of them have in common, if there is one", arguments: 0..<20)
  func common(seed: Int) throws {
    let tokens = ["a", "b", "$p", "_inbox"]
    var names = tokens
    for _ in 0..<3 { names += names.flatMap { name in tokens.map { "\(name).\($0)" } } }
    names = Array(Set(names)).filter { (try? TopicName.validate($0)) != nil }
    func pattern() throws -> TopicPattern {
      while true {
        var parts = (0..<Int.random(in: 1...3)).map { _ in (tokens + ["*"]).randomElement()! }
        if Bool.random() { parts.append(">") }
        if let pattern = try? TopicPattern(parts.joined(separator: ".")) { return pattern }
      }
    }
    for _ in 0..<50 {
      let (left, right) = (try pattern(), try pattern())
      let found = left.commonName(with: right)
      // Names of "x" represent the others.
      #expect((found != nil) == names.contains { left.selects($0) && right.selects($0) }, "\(left) \(right)")
      #expect(found.map { left.selects($0) && right.selects($0) } ?? true, "\(left) \(right)")
    }
  }

  @Test("have no name in common that would be too long")
  func commonLength() throws {
    let long = String(repeating: "n", count: 150)
    let (left, right) = (try TopicPattern("\(long).*"), try TopicPattern("*.\(long)"))
    #expect(left.commonName(with: right) == nil)
    #expect(try left.commonName(with: TopicPattern("*.n")) == "\(long).n")
  }
}
