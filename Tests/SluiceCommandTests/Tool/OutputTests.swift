import SluiceClient
import SluiceCommand
import Testing

@testable import SluiceTool

@Suite("Printing records")
struct OutputTests {
  private func print(
    _ format: OutputFormat, _ payload: [UInt8], key: [UInt8]? = nil, headers: [Message.Header] = []
  ) -> String {
    var output: [UInt8] = []
    payload.withUnsafeBytes {
      format.append(
        $0,
        of: RecordParts(
          topic: "a.b", offset: 7, time: 1_770_091_506_789, key: key, headers: headers, payload: $0),
        to: &output)
    }
    return String(decoding: output, as: UTF8.self)
  }

  @Test("Lines end with a line break, raw payloads with nothing, frames begin with their length")
  func plain() {
    let payload = Array("hi\nthere".utf8)
    #expect(print(.lines, payload) == "hi\nthere\n")
    #expect(print(.raw, payload) == "hi\nthere")
    #expect(print(.frames, payload) == "\u{8}\0\0\0hi\nthere")
    #expect(print(.lines, []) == "\n")
    #expect(print(.raw, []) == "")
    #expect(print(.frames, []) == "\0\0\0\0")
  }

  @Test("JSON leaves out what a record hasn't, and puts what isn't text in base 64")
  func json() {
    let time = "\"time\":\"2026-02-03T04:05:06.789Z\""
    #expect(
      print(.json(RecordJSON()), Array("say \"hi\"\n".utf8))
        == "{\"offset\":7,\"topic\":\"a.b\",\(time),\"payload\":\"say \\\"hi\\\"\\n\"}\n")
    #expect(
      print(
        .json(RecordJSON()), [255, 0], key: Array("k".utf8), headers: [.init("n", "v"), .init("b", [0xC0])])
        == "{\"offset\":7,\"topic\":\"a.b\",\(time),\"key\":\"k\",\"headers\":[{\"name\":\"n\",\"value\":\"v\"},"
        + "{\"name\":\"b\",\"value_base64\":\"wA==\"}],\"payload_base64\":\"/wA=\"}\n")
    #expect(print(.json(RecordJSON()), [], key: []).contains("\"key\":\"\""))
  }

  @Test(
    "Base 64",
    arguments: [
      ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
      ("foobar", "Zm9vYmFy"),
    ])
  func base64(text: String, expected: String) {
    var output: [UInt8] = []
    Array(text.utf8).withUnsafeBytes { Base64.append($0, to: &output) }
    #expect(String(decoding: output, as: UTF8.self) == expected)
  }

  @Test(
    "Templates",
    arguments: [
      ("{offset} {payload}", "7 pay\n"), ("{topic}\\t{size}", "a.b\t3\n"),
      ("{key}|{header:b}|{header:x}", "k|2|\n"),
      ("{headers}", "a=1 b=2\n"), ("{{{offset}}}", "{7}\n"), ("\\\\\\0é", "\\\0é\n"), ("", "\n"),
      ("{time}", "2026-02-03T04:05:06.789Z\n"),
    ])
  func templates(text: String, expected: String) throws {
    let format = OutputFormat.template(try RecordTemplate(parsing: text))
    let headers: [Message.Header] = [.init("a", "1"), .init("b", "2")]
    #expect(print(format, Array("pay".utf8), key: Array("k".utf8), headers: headers) == expected)
  }

  @Test(
    "Templates that can't be",
    arguments: [
      ("{ofset}", "did you mean {offset}?"), ("{zzz}", "there is no {zzz}; there are {topic}"),
      ("{offset", "'}' is missing"),
      ("a}", "there is a '}' without a '{'"), ("\\x", "'\\x' isn't an escape"),
      ("\\", "'\\' isn't an escape"),
      ("{header:}", "there is no {header:}"),
    ])
  func badTemplates(text: String, part: String) {
    do {
      _ = try RecordTemplate(parsing: text)
      Issue.record("taken")
    } catch {
      #expect(error.description.contains(part))
    }
  }
}
