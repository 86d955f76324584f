import Testing

@testable import SluiceCommand

@Suite("Words for people")
struct TextTests {
  @Test(
    "A word that is nearly right finds the one that was meant",
    arguments: [
      ("lisen", "listen"), ("listne", "listen"), ("replay-record", "replay-records"), ("comp", "complete"),
      ("pubs", "pub"), ("sbu", "sub"), ("LISTEN", nil), ("xyzzy", nil), ("", nil), ("zz", nil),
    ])
  func nearest(word: String, expected: String?) {
    let words = ["listen", "replay-records", "replay-bytes", "complete", "create", "pub", "sub", "ping"]
    #expect(Spelling.nearest(to: word, in: words) == expected)
  }

  @Test("several names may be near: the nearest first, as many as are wanted")
  func severalNear() {
    let names = ["orders.us", "prices", "orders.eu", "order.ew", "orders.ew.x"]
    #expect(
      Spelling.nearest(to: "orders.ew", in: names, limit: 3) == ["orders.eu", "order.ew", "orders.ew.x"])
    #expect(Spelling.nearest(to: "orders.ew", in: names, limit: 0) == [])
    #expect(Spelling.nearest(to: "zebra", in: names, limit: 3) == [])
  }

  @Test(
    "Distance counts letters added, dropped, replaced and swapped",
    arguments: [
      ("", "", 0), ("abc", "", 3), ("abc", "abc", 0), ("abc", "acb", 1), ("kitten", "sitting", 3),
      ("ab", "ba", 1),
    ])
  func distance(left: String, right: String, expected: Int) {
    #expect(Spelling.distance(Array(left.utf8), Array(right.utf8)) == expected)
    #expect(Spelling.distance(Array(right.utf8), Array(left.utf8)) == expected)
  }

  @Test("What stands in a table can't steer a terminal, nor make up rows")
  func tables() {
    #expect(
      TextTable.render([["A", "B"], ["a\u{1B}[2J\nb", "\u{9B}2Jé"]], leftColumns: 2)
        == "A              B\na\\u001b[2J\\nb  \\u009b2Jé\n")
  }

  @Test("A complaint is one line, and can't steer a terminal")
  func complaints() {
    #expect(Complaint.line("bad\nthing\u{1B}[2J", by: "sluice") == "sluice: bad\\nthing\\u001b[2J\n")
  }

  @Test(
    "JSON text",
    arguments: [
      ("plain", #""plain""#), ("a\"b\\c", #""a\"b\\c""#), ("l1\nl2\t\r", #""l1\nl2\t\r""#),
      ("\u{1}\u{7F}", #""\u0001\u007f""#),
      ("grün 🙂", #""grün 🙂""#),
    ])
  func json(text: String, expected: String) {
    #expect(JSONText.quoted(text) == expected)
  }

  @Test("The help shows usage, options with their other ways, commands and examples, within 88 columns")
  func help() {
    let sub = CommandPage("p go", summary: "goes", operands: [Operand("WHERE"), Operand("HOW", .repeated)])
    let page = CommandPage(
      "p", summary: "for tests",
      options: [
        CommandOption(
          "far", value: "N", help: String(repeating: "word ", count: 30), environment: "P_FAR", standard: "3"),
        CommandOption("an-option-with-a-long-name", value: "PLACE", help: "Told below."),
        CommandOption("later", help: "", unavailable: "no"),
      ], examples: ["Try it.": "p go there"], commands: [sub])
    let text = HelpText.render(page)
    #expect(text.contains("Usage: p [OPTION]... COMMAND\n"))
    #expect(text.contains("  go WHERE [HOW]...       goes\n"))
    #expect(text.contains("(default 3; P_FAR)"))
    #expect(text.contains("  --an-option-with-a-long-name PLACE\n                          Told below.\n"))
    #expect(text.contains("  # Try it.\n  p go there\n"))
    #expect(!text.contains("later"))
    #expect(text.split(separator: "\n").allSatisfy { $0.count <= 88 })
    #expect(HelpText.render(sub).contains("Usage: p go [OPTION]... WHERE [HOW]...\n"))
  }
}
