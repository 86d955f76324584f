import SluiceClient
import SluiceCommand
import TestSupport
import Testing

@testable import SluiceTool

@Suite("What administration reads and writes")
struct AdministrationTextTests {
  @Test("JSON is read")
  func json() throws {
    let text = #" {"a": [1, -2.5e3, true, false, null, "x\n\u00e4\ud83d\ude00\"\/"], "b": {"a": ""}} "#
    #expect(
      try JSONReader.read(Array(text.utf8))
        == .object([
          "a": .array([.number("1"), .number("-2.5e3"), .flag(true), .flag(false), .null, .text("x\nä😀\"/")]),
          "b": .object(["a": .text("")]),
        ]))
    #expect(try JSONReader.read(Array("[]".utf8)) == .array([]))
    for wrong in [
      "", " ", "{", "[1,]", "{\"a\"}", "{\"a\":1,}", "{a:1}", "\"a", "\"\\x\"", "\"\\ud800\"",
      "\"\\ud800\\u0041\"",
      "\"\n\"", "01x", "-", "1.", "tru", "[1] 2", "\"\\u12g4\"", String(repeating: "[", count: 1000),
    ] {
      #expect(throws: ValueError.self, "\(wrong)") { try JSONReader.read(Array(wrong.utf8)) }
    }
    #expect(throws: ValueError.self) { try JSONReader.read([0x22, 0xFF, 0x22]) }
  }

  @Test("what sub --json prints is read as it was")
  func notation() throws {
    let cases: [(String, [UInt8], [UInt8]?, Int)] = [
      (#"{"offset":7,"topic":"t","time":"x","payload":"p"}"#, Array("p".utf8), nil, 0),
      (#"{"key":"k","headers":[{"name":"a","value":"b"}],"payload":""}"#, [], Array("k".utf8), 1),
      (#"{"key_base64":"/w==","payload_base64":"//4="}"#, [255, 254], [255], 0),
    ]
    for (line, payload, key, headers) in cases {
      let message = try Array(line.utf8).withUnsafeBytes {
        try RecordNotation.json.message(in: $0, number: 1)
      }
      #expect(message?.payload == payload && message?.key == key && message?.headers.count == headers)
    }
    for wrong in [
      "[]", "{}", #"{"payload":1}"#, #"{"payload":"p","headers":7}"#,
      #"{"payload":"p","headers":[{"name":"a"}]}"#,
      #"{"payload_base64":"/"}"#,
    ] {
      #expect(throws: InputError.self, "\(wrong)") {
        try Array(wrong.utf8).withUnsafeBytes { try RecordNotation.json.message(in: $0, number: 3) }
      }
    }
  }

  @Test(
    "keys end at the first separator",
    arguments: [("k::v::w", "k", "v::w"), ("::v", "", "v"), ("k::", "k", "")])
  func separator(line: String, key: String, payload: String) throws {
    let notation = RecordNotation.keyed(Array("::".utf8))
    let message = try Array(line.utf8).withUnsafeBytes { try notation.message(in: $0, number: 1) }
    #expect(message?.key == Array(key.utf8) && message?.payload == Array(payload.utf8))
    for wrong in ["", "k:v", ":"] {
      #expect(throws: InputError.self) {
        try Array(wrong.utf8).withUnsafeBytes { try notation.message(in: $0, number: 1) }
      }
    }
  }

  @Test("a host without a port means 7420")
  func addresses() throws {
    for (text, full) in [
      ("h", "h:7420"), ("h:1", "h:1"), ("[::1]", "[::1]:7420"), ("[::1]:9", "[::1]:9"),
      ("tls://h", "tls://h:7420"), ("tls://[::1]", "tls://[::1]:7420"), ("unix:/a", "unix:/a"),
    ] {
      #expect(try "\(Values.address(text, port: 7420))" == full)
    }
    for wrong in ["", "tls://", "h:", "h:x"] {
      #expect(throws: ValueError.self, "\(wrong)") { try Values.address(wrong, port: 7420) }
    }
    #expect(throws: ValueError.self) { try Values.address("h") }
  }

  @Test("a date is the beginning of its day")
  func dates() throws {
    #expect(try WallTime.parse("2026-01-01") == WallTime.parse("2026-01-01T00:00:00Z"))
    for wrong in ["2026-01", "2026-02-30", "2026-01-01T", "2026-01-01x"] {
      #expect(throws: ValueError.self, "\(wrong)") { try WallTime.parse(wrong) }
    }
  }

  @Test("the oldest copies are those to remove, and nothing else")
  func copies() {
    let made = ["a-20260101T000000Z.x", "a-20260102T000000Z.x", "a-20251231T235959Z.x"]
    let others = [
      "a-latest.x", "a-20260101T000000Z.y", "b-20260101T000000Z.x", "a-20260101T000000Z.x.partial",
    ]
    #expect(BackupName.old(made + others, "a-{time}.x", keeping: 2) == ["a-20251231T235959Z.x"])
    #expect(BackupName.old(made + others, "a-{time}.x", keeping: 3) == [])
    #expect(BackupName.old(made, "a.x", keeping: 1) == [])
    #expect(BackupName("/d/a-{time}", keeping: 1).path(at: 0) == "/d/a-19700101T000000Z")
    #expect(BackupName.isTime("19700101T000000Z") && !BackupName.isTime("19700101T000000"))
  }

  @Test("a line of progress says how far, how fast and how long")
  func progress() {
    func text(_ done: UInt64, _ total: UInt64?, _ unit: ProgressLine.Figures.Unit, _ note: String = "")
      -> String
    {
      ProgressLine.text(
        ProgressLine.Figures(done: done, total: total, unit: unit, note: note), after: .seconds(2), width: 200
      )
    }
    #expect(text(1 << 20, 4 << 20, .bytes) == "1.00 MiB of 4.00 MiB (25 %), 512 KiB/s, 6 s left")
    #expect(text(500, nil, .records, "x") == "500 records, 250/s, x")
    #expect(text(10, 5, .records).hasPrefix("10 records of 5 records (100 %)"))
    #expect(!text(0, 0, .bytes).contains("%"))
    let narrow = ProgressLine.text(
      ProgressLine.Figures(done: 1, total: 2, unit: .bytes), after: .zero, width: 10)
    #expect(narrow.count == 9)
  }

  @Test("styles are for terminals, unless NO_COLOR says otherwise")
  func styles() {
    func dim(_ isTerminal: Bool, _ noColor: String?, _ terminal: String?) -> Bool {
      TerminalStyle(isTerminal: isTerminal, noColor: noColor, terminal: terminal).dim("x") != "x"
    }
    #expect(dim(true, nil, "xterm") && dim(true, "", nil))
    #expect(!dim(false, nil, "xterm") && !dim(true, "1", "xterm") && !dim(true, nil, "dumb"))
  }

  @Test("only yes is yes")
  func answers() {
    for yes in ["y", "Y\n", " yes \n", "YES"] { #expect(Question.answer(Array(yes.utf8)) == true) }
    #expect(Question.answer([]) == nil)
    for no in ["\n", "n", "yess", "no"] { #expect(Question.answer(Array(no.utf8)) == false) }
  }

  @Test("the file of contexts is read as it was written, and what isn't one is refused")
  func contexts() throws {
    var file = ContextFile()
    file.current = "b"
    file.contexts = ["a": ["server": ["h", "i"]], "b": ["token": ["\"secret\""], "server": ["j"]]]
    let read = try ContextFile(Array(file.json.line.utf8))
    #expect(read.current == "b" && read.contexts == file.contexts)
    for wrong in ["", "[]", #"{"contexts":{"a":1}}"#, #"{"contexts":{"a":{"server":"x"}}}"#] {
      #expect(throws: ValueError.self, "\(wrong)") { try ContextFile(Array(wrong.utf8)) }
    }
  }
}
