import Glibc
import SluiceWire
import TestSupport
import Testing

/// How `sluice sub` prints records, field by field.
@Suite(.onItsOwnThread) struct SubOutputTests {
  private let broker: BrokerProcess

  init() throws {
    broker = try BrokerProcess()
    try broker.run("pub", "t", "a \"b\"\tc", "--key", "k", "--header", "n=v", "--header", "m=w")
    try broker.run("pub", "t", "--delimiter", "none", input: .bytes([0xFF, 0x00, 0x0A]))
  }

  private func sub(_ options: String...) throws -> ChildProcess {
    try broker.run(["sub", "t", "--until-live"] + options)
  }

  /// Whether a text has the form of `{time}` and JSON: "2026-02-03T04:05:06.789Z".
  private func isTime(_ text: String) -> Bool {
    text.utf8.count == 24 && text.hasPrefix("20") && text.hasSuffix("Z") && text.dropFirst(10).first == "T"
  }

  @Test func anObjectHasAllOfTheRecord() throws {
    let lines = try sub("--json").standardOutput.lines
    try #require(lines.count == 2)
    let first = try object(lines[0])
    #expect(first["offset"] as? Int == 0 && first["topic"] as? String == "t")
    #expect(isTime(first["time"] as? String ?? ""), "\(lines[0])")
    #expect(first["key"] as? String == "k" && first["payload"] as? String == "a \"b\"\tc")
    let headers = first["headers"] as? [[String: String]]
    #expect(headers == [["name": "n", "value": "v"], ["name": "m", "value": "w"]])
    let second = try object(lines[1])
    #expect(second["offset"] as? Int == 1 && second["payload_base64"] as? String == "/wAK")
    #expect(Set(second.keys) == ["offset", "topic", "time", "payload_base64"])
  }

  @Test func aLineIsAsItsTemplateSays() throws {
    let process = try sub(
      "--format",
      "{{{offset}}}\\t{topic} {size} {key} {headers} {header:m}{header:none}{deliveries} {payload}\\\\")
    #expect(
      process.standardOutput.bytes.starts(with: Array("{0}\tt 7 k n=v m=w w a \"b\"\tc\\\n{1}\tt 3    ".utf8))
    )
    let time = try sub("--format", "{time}", "--count", "1").standardOutput.lines
    #expect(time.count == 1 && isTime(time[0]), "\(time)")
    #expect(try object(try sub("--json", "--count", "1").standardOutput.text)["time"] as? String == time[0])
  }

  @Test func rawIsThePayloadsAndFramesTellTheirLengths() throws {
    let first = Array("a \"b\"\tc".utf8)
    let second: [UInt8] = [0xFF, 0x00, 0x0A]
    #expect(try sub("--raw").standardOutput.bytes == first + second)
    #expect(try sub("--frames").standardOutput.bytes == [7, 0, 0, 0] + first + [3, 0, 0, 0] + second)
    #expect(try sub().standardOutput.bytes == first + [0x0A] + second + [0x0A])
  }

  @Test func aCommandHasTheRecordInItsInputAndItsEnvironment() throws {
    let process = try sub(
      "--exec", "echo \"$SLUICE_TOPIC $SLUICE_OFFSET ${SLUICE_KEY-none} $(wc -c) $SLUICE_TIME\"")
    let lines = process.standardOutput.lines.map { $0.split(separator: " ").map(String.init) }
    #expect(lines.map { Array($0.prefix(4)) } == [["t", "0", "k", "7"], ["t", "1", "none", "3"]])
    #expect(lines.allSatisfy { isTime($0.last ?? "") }, "\(lines)")
  }

  @Test func theFirstCommandThatFailsIsTheLast() throws {
    let process = try broker.run("sub", "t", "--exec", "wc -c; exit 7", code: 1)
    #expect(process.standardOutput.text == "7\n")
    #expect(process.standardError.text == "sluice: the command for offset 0 of t ended with code 7\n")
    let killed = try broker.run("sub", "t", "--exec", "kill -KILL $$", code: 1)
    #expect(killed.standardError.text == "sluice: the command for offset 0 of t was ended by signal 9\n")
  }

  @Test func aGroupTellsForWhichTimeARecordIsDelivered() throws {
    let options = ["sub", "t", "--group", "g", "--from", "earliest", "--count", "1"]
    #expect(try broker.run(options + ["--format", "{deliveries}"]).standardOutput.text == "1\n")
    let json = try broker.run(options + ["--json"]).standardOutput.text
    #expect(try object(json)["deliveries"] as? Int == 1)
  }
}
