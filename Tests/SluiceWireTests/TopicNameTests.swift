import Testing

@testable import SluiceWire

@Suite("Topic names")
struct TopicNameTests {
  private static let decomposed =
    "its characters aren't composed as Unicode's Normalization Form C has them; compose them"

  @Test(
    "tokens of printable characters between dots are names",
    arguments: [
      "a", "orders.eu.new", "0", "a-b_c/d:e", "Straße.größe", "数据.流", "🙂", "a$b", "a.$b", "x<y", "\"quoted\"",
      "caf\u{e9}", "a.\u{301}", "q\u{301}", "\u{AC00}", "\u{212}",
      "\\",
      String(repeating: "x", count: 255), String(repeating: "é", count: 127),
      "a" + String(repeating: ".a", count: 127),
    ])
  func valid(_ name: String) throws {
    try TopicName.validate(name)
  }

  @Test(
    "what isn't a name is refused, with what is wrong and where",
    arguments: [
      ("", "a topic name can't be empty"),
      (".", "\".\" isn't a topic name: the token before the dot at character 1 is empty"),
      (".a", "\".a\" isn't a topic name: the token before the dot at character 1 is empty"),
      ("a..b", "\"a..b\" isn't a topic name: the token before the dot at character 3 is empty"),
      ("a.", "\"a.\" isn't a topic name: the last token is empty"),
      (
        "a.*",
        "\"a.*\" isn't a topic name: * at character 3 is for patterns, as a token of its own between dots"
      ),
      (">", "\">\" isn't a topic name: > at character 1 is for patterns, as a token of its own at their end"),
      ("a b", "\"a b\" isn't a topic name: white space or a control character at character 2"),
      ("a\tb", "\"a\\tb\" isn't a topic name: white space or a control character at character 2"),
      ("a\n", "\"a\\n\" isn't a topic name: white space or a control character at character 2"),
      ("\u{0}", "\"\\u0000\" isn't a topic name: white space or a control character at character 1"),
      ("é\u{1B}[2J", "\"é\\u001b[2J\" isn't a topic name: white space or a control character at character 2"),
      ("a\u{7F}", "\"a\\u007f\" isn't a topic name: white space or a control character at character 2"),
      ("a\u{9B}", "\"a\\u009b\" isn't a topic name: white space or a control character at character 2"),
      ("a\u{A0}", "\"a\u{A0}\" isn't a topic name: white space or a control character at character 2"),
      ("a\u{2028}", "\"a\\u2028\" isn't a topic name: white space or a control character at character 2"),
      ("e\u{301}", "\"e\u{301}\" isn't a topic name: \(decomposed)"),
      ("a.\u{1100}\u{1161}", "\"a.\u{1100}\u{1161}\" isn't a topic name: \(decomposed)"),
      ("\u{212A}", "\"\u{212A}\" isn't a topic name: \(decomposed)"),
      ("q\u{301}\u{323}", "\"q\u{301}\u{323}\" isn't a topic name: \(decomposed)"),
      ("$sys", "\"$sys\" isn't a topic name: names that start with $ are reserved"),
    ])
  func invalid(_ name: String, _ message: String) {
    #expect(throws: WireError(.invalidTopic, message)) { try TopicName.validate(name) }
  }

  @Test("a name has 255 bytes of UTF-8 at the most, and the message isn't as long as the name")
  func tooLong() {
    let start = "\"" + String(repeating: "x", count: 64) + "…\""
    #expect(
      throws: WireError(.invalidTopic, "\(start) isn't a topic name: it has 256 bytes; the limit is 255")
    ) {
      try TopicName.validate(String(repeating: "x", count: 256))
    }
    #expect(throws: WireError.self) { try TopicName.validate(String(repeating: "é", count: 128)) }
    // One character of very many scalars.
    let error = #expect(throws: WireError.self) {
      try TopicName.validate("a" + String(repeating: "\u{301}", count: 30_000))
    }
    #expect((error?.message.utf8.count ?? 0) < 300)
  }

  @Test("the characters that can't be seen are those of Unicode's properties")
  func visibility() {
    for value in UInt32.min...0x10FFFF {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let properties = scalar.properties
      let isVisible = !properties.isWhitespace && properties.generalCategory != .control
      if TopicName.isVisible(scalar) != isVisible { Issue.record("U+\(String(value, radix: 16))") }
    }
  }

  /// A second implementation of the rules for names, token by token.
  private func isName(_ text: String, wildcards: Bool) -> Bool {
    let tokens = text.split(separator: ".", omittingEmptySubsequences: false)
    guard (1...255).contains(text.utf8.count), !text.hasPrefix("$") else { return false }
    return tokens.enumerated().allSatisfy { index, token in
      if wildcards, token == "*" || token == ">" && index == tokens.count - 1 { return true }
      return !token.isEmpty
        && token.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x2A && $0 != 0x3E }
    }
  }

  @Test("names and patterns of ASCII are recognized by their bytes, whatever their length")
  func plainNames() {
    var random = SystemRandomNumberGenerator()
    let others = Array("ab.*>$ \u{1F}\u{7F}!~é")
    for length in 0...270 {
      for _ in 0..<40 {
        var characters = (0..<length).map { _ in Character("x") }
        for _ in 0..<Int.random(in: 0...4, using: &random) where length > 0 {
          characters[Int.random(in: 0..<length, using: &random)] = others.randomElement(using: &random)!
        }
        let text = String(characters)
        #expect(PlainName.isName(text) == isName(text, wildcards: false), "\(text.debugDescription)")
        #expect(PlainName.isPattern(text) == isName(text, wildcards: true), "\(text.debugDescription)")
      }
    }
  }
}
