import SluiceWire
import Testing

@Suite("Text from peers as it is shown")
struct ShownTextTests {
  @Test(
    "Characters that control a terminal or reorder text are escaped, and others stay",
    arguments: [
      ("plain grün 🙂 …–™", "plain grün 🙂 …–™"), ("a\u{1B}]0;t\u{7}", "a\\u001b]0;t\\u0007"),
      ("\u{0}\u{7F}\u{80}\u{9B}2J\u{9F}\u{A0}", "\\u0000\\u007f\\u0080\\u009b2J\\u009f\u{A0}"),
      ("\u{202A}\u{202E}\u{2066}\u{2069}", "\\u202a\\u202e\\u2066\\u2069"),
      ("\u{2027}\u{202F}\u{2065}\u{206A}\u{200F}", "\u{2027}\u{202F}\u{2065}\u{206A}\u{200F}"),
      ("l\u{2028}p\u{2029}", "l\\u2028p\\u2029"), ("a\r\nb\tc", "a\\r\\nb\\tc"), (#"a"\b"#, #"a"\b"#),
    ])
  func line(text: String, expected: String) {
    #expect(ShownText.line(text) == expected)
    #expect(ShownText.line(ShownText.line(text)) == expected)
    #expect(ShownText.escaped(bytes: Array(text.utf8), in: .line) == expected)
  }

  @Test("Whole lines keep their breaks and tabs, and no carriage return")
  func lines() {
    #expect(ShownText.escaped("a\tb\r\n\u{1B}c\n", in: .lines) == "a\tb\\r\n\\u001bc\n")
  }

  @Test("In JSON and in names, backslashes are escaped")
  func notations() {
    #expect(ShownText.escaped("\"\\\u{202E}", in: .json) == #"\"\\\u202e"#)
    #expect(ShownText.escaped("\"\\\u{202E}", in: .name) == #""\\\u202e"#)
  }

  @Test("Two names that differ are shown differently")
  func names() {
    let texts = ["a\u{1B}", #"a\u001b"#, #"a\\u001b"#, "a\\\u{1B}", "a\\\\\u{1B}", "a\n", "a\\n"]
    #expect(Set(texts.map { ShownText.escaped($0, in: .name) }).count == texts.count)
  }

  @Test(
    "Bytes that aren't UTF-8 are shown in hexadecimal, one by one",
    arguments: [
      ([0x61, 0xFF, 0x62], "a\\xffb"), ([0xC3], "\\xc3"), ([0xE2, 0x82, 0x61], "\\xe2\\x82a"),
      ([0xC3, 0xBC, 0x80, 0x1B], "ü\\x80\\u001b"), ([0xED, 0xA0, 0x80], "\\xed\\xa0\\x80"), ([], ""),
    ] as [([UInt8], String)])
  func bytes(bytes: [UInt8], expected: String) {
    #expect(ShownText.escaped(bytes: bytes, in: .line) == expected)
    // This holds for a part of a buffer, too.
    #expect(ShownText.escaped(bytes: ([0x78] + bytes)[1...], in: .line) == expected)
  }

  @Test("A long text is cut between characters")
  func limit() {
    #expect(ShownText.line("äöü", limit: 3) == "äöü")
    #expect(ShownText.line("äöü\u{1B}", limit: 3) == "äöü…")
    #expect(ShownText.line("ab\u{1B}cd", limit: 3) == "ab\\u001b…")
  }
}
