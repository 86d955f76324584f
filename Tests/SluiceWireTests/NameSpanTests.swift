import SluiceWire
import TestSupport
import Testing

@Suite("Spans of names")
struct NameSpanTests {
  private func holds(_ span: NameSpan, _ name: String) -> Bool {
    !NameSpan.precedes(name, span.first) && !span.isBefore(name)
  }

  @Test("a pattern's span is as narrow as its first tokens say")
  func narrow() throws {
    func span(_ pattern: String) throws -> NameSpan { try TopicPattern(pattern).span }
    #expect(try span("a.b") == NameSpan(first: "a.b", end: "a.b\0"))
    #expect(try span("a.b.*") == NameSpan(first: "a.b.", end: "a.b/"))
    #expect(try span("a.*.c") == NameSpan(first: "a.", end: "a/"))
    #expect(try span("a.>") == NameSpan(first: "a.", end: "a/"))
    #expect(try span("*.a") == .all)
    #expect(try span(">") == .all)
    // Names may spell these differently.
    #expect(try span("a.é.b") == NameSpan(first: "a.", end: "a/"))
    #expect(try span("a.K") == NameSpan(first: "a.", end: "a/"))
    #expect(try span("K") == .all)
  }

  @Test("every name that a pattern matches stands in its span", arguments: [1, 2, 3] as [UInt64])
  func complete(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    // Includes characters beyond ASCII, combining ones, and those directly before and after the dot.
    let characters = ["a", "b", "-", "/", "K", ";", "`", "é", "\u{301}", "Å", "~", "\u{10FFFF}"]
    func token() -> String {
      (0..<Int.random(in: 1...2, using: &random)).map { _ in characters.randomElement(using: &random)! }
        .joined()
    }
    var matched = 0
    for _ in 0..<20_000 {
      let name = (0..<Int.random(in: 1...3, using: &random)).map { _ in token() }
      var pattern = name.map { Int.random(in: 0..<5, using: &random) == 0 ? "*" : $0 }
      if Int.random(in: 0..<4, using: &random) == 0 { pattern[pattern.count - 1] = ">" }
      let (text, joined) = (pattern.joined(separator: "."), name.joined(separator: "."))
      guard let parsed = try? TopicPattern(text), parsed.matches(joined) else { continue }
      matched += 1
      #expect(holds(parsed.span, joined), "\(text) \(joined)")
    }
    #expect(matched > 10_000)
  }

  @Test("merged spans hold what each of them holds, in order and apart", arguments: [1, 2, 3] as [UInt64])
  func merging(_ seed: UInt64) {
    var random = SeededRandom(seed: seed)
    func name() -> String {
      String((0..<Int.random(in: 1...2, using: &random)).map { _ in "abcd".randomElement(using: &random)! })
    }
    for _ in 0..<500 {
      let spans = (0..<Int.random(in: 0...5, using: &random)).map { _ in
        let (one, other) = (name(), name())
        let end = Int.random(in: 0..<8, using: &random) == 0 ? nil : max(one, other) + "\0"
        return NameSpan(first: min(one, other), end: end)
      }
      let merged = NameSpan.merged(spans)
      for _ in 0..<20 {
        let name = name()
        let held = spans.contains { holds($0, name) }
        #expect(merged.filter { holds($0, name) }.count == (held ? 1 : 0), "\(name) in \(spans)")
      }
      for (one, next) in zip(merged, merged.dropFirst()) { #expect(one.end! < next.first) }
    }
  }
}
