import Foundation
import TestSupport
import Testing

/// `sluice restore`: imports an export of one broker into another running broker.
@Suite(.onItsOwnThread) struct RestoreTests {
  private let stage: DurableStage
  private let directory: TemporaryDirectory
  private let file: String

  init() throws {
    stage = try DurableStage()
    directory = try TemporaryDirectory()
    file = directory.file("topics.sluice")
  }

  private func broker() throws -> BrokerProcess {
    try BrokerProcess(options: ["--data", directory.file("other")])
  }

  private func records(_ topic: String, _ broker: BrokerProcess) throws -> String {
    try broker.run(
      "sub", topic, "--from", "earliest", "--until-live", "--format", "{offset} {key} {headers} {payload}"
    ).standardOutput.text
  }

  private func next(_ cursor: String, _ topic: String, _ broker: BrokerProcess) throws -> Int? {
    let lines = try broker.run("cursor", "list", topic, "--json").standardOutput.lines
    let objects = try lines.map { try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] }
    return objects.first { $0?["cursor"] as? String == cursor }??["next_offset"] as? Int
  }

  @Test func topicsAreAsTheyWere() throws {
    try stage.sluice(
      "topic", "create", "orders", "--storage", "durable", "--flow", "lossless", "--without-subscribers",
      "hold", "--lag", "fail")
    try stage.sluice("topic", "create", "prices", "--storage", "durable")
    try stage.sluice("topic", "create", "ended", "--storage", "durable")
    try stage.sluice("topic", "set", "orders", "--flow", "free")
    for number in 0..<20 {
      try stage.sluice(
        "pub", "orders", "\(number)", "--key", "k\(number)", "--header", "n=\(number)", "--quiet")
    }
    try stage.sluice("topic", "set", "orders", "--flow", "lossless")
    try stage.sluice("sub", "orders", "--from", "earliest", "--cursor", "billing", "--count", "12", "--quiet")
    try stage.sluice("sub", "orders", "--from", "earliest", "--group", "workers", "--count", "3", "--quiet")
    try stage.sluice("topic", "trim", "orders", "--before", "5")
    try stage.sluice("pub", "prices", "1", "--key", "a", "--quiet")
    try stage.sluice("pub", "prices", "2", "--key", "a", "--quiet")
    try stage.sluice("pub", "ended", "last", "--fail", "because", "--quiet")
    try stage.sluice("store", "export", stage.data, file, "--quiet")

    let other = try broker()
    defer { other.process.stop() }
    let run = try other.run("restore", file)
    #expect(run.standardError.text.contains("1 cursor, 1 group"), "\(run.messages)")
    #expect(run.standardError.text.contains("restored 3 topics"), "\(run.messages)")
    #expect(
      run.standardError.text.contains("offsets begin at 0, and records have new times"), "\(run.messages)")
    let expected = (5..<20).map { "\($0 - 5) k\($0) n=\($0) \($0)\n" }.joined()
    #expect(try records("orders", other) == expected)
    let settings = ["storage", "flow", "without_subscribers", "lag"]
    let (left, right) = (try stage.broker.shown("orders"), try other.shown("orders"))
    for name in settings { #expect(left[name] as? String == right[name] as? String, "\(name)") }
    // The cursor points to the same record.
    #expect(try next("billing", "orders", stage.broker) == 12 && next("billing", "orders", other) == 7)
    #expect(try other.run("sub", "prices", "--until-live").standardOutput.text == "1\n2\n")
    #expect(try other.run("sub", "ended", code: 3).standardError.text.contains("because"))

    // It doesn't overwrite existing records, and repeating it changes nothing.
    let refused = try other.run("restore", file, code: 1)
    #expect(refused.standardError.text.contains("has records already"))
    _ = try other.run("restore", file, "--resume", "--quiet")
    #expect(try records("orders", other) == expected)
    #expect(try other.run("sub", "prices", "--until-live").standardOutput.text == "1\n2\n")
  }

  @Test(
    "a topic that is refused doesn't keep the others from being restored, nor does the log of MQTT gateways")
  func others() throws {
    for topic in ["a", "b", "c", "mqtt.sessions"] {
      try stage.sluice("topic", "create", topic, "--storage", "durable")
      try stage.sluice("pub", topic, "old", "--quiet")
    }
    try stage.sluice("store", "export", stage.data, file, "--quiet")
    let other = try broker()
    defer { other.process.stop() }
    for topic in ["b", "mqtt.sessions"] { _ = try other.run("pub", topic, "new", "--quiet") }
    let run = try other.run("restore", file, code: 1)
    #expect(run.standardError.text.contains("topic b has records already"), "\(run.messages)")
    #expect(run.standardError.text.contains("mqtt.sessions isn't restored"), "\(run.messages)")
    #expect(run.standardError.text.contains("restored 2 topics"), "\(run.messages)")
    for (topic, text) in [("a", "old\n"), ("b", "new\n"), ("c", "old\n"), ("mqtt.sessions", "new\n")] {
      #expect(try other.run("sub", topic, "--until-live").standardOutput.text == text)
    }
    _ = try other.run("topic", "delete", "b", "--yes")
    _ = try other.run("restore", file, "--topic", "b", "--quiet")
    #expect(try other.run("sub", "b", "--until-live").standardOutput.text == "old\n")
    // A command that names this topic fails.
    let asked = try other.run("restore", file, "--topic", "mqtt.sessions", code: 1)
    #expect(asked.standardError.text.contains("has records already"), "\(asked.messages)")
  }

  @Test func anInterruptedRestoreGoesOnWithoutGapsAndDuplicates() throws {
    try stage.sluice("topic", "create", "t", "--storage", "durable")
    let text = (0..<20_000).map { "\($0) \(String(repeating: "x", count: 90))\n" }.joined()
    try stage.sluice("pub", "t", "--ack", "durable", "--quiet", input: .bytes(Array(text.utf8)))
    try stage.sluice("store", "export", stage.data, file, "--quiet")
    let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
    let half = directory.file("half")
    try bytes.prefix(bytes.count / 2).write(to: URL(fileURLWithPath: half))
    let other = try broker()
    defer { other.process.stop() }
    let cut = try other.run("restore", half, code: 1)
    #expect(
      cut.standardError.text.contains("ends within it") || cut.standardError.text.contains("cut off"),
      "\(cut.messages)")
    _ = try other.run("restore", file, "--resume", "--quiet", "--time-header", "was")
    #expect(try other.run("sub", "t", "--until-live").standardOutput.text == text)
    #expect(
      try other.run("sub", "t", "--from", "last:1", "--until-live", "--headers").standardOutput.text
        .hasPrefix("was=20"))
    _ = try other.run("restore", file, "--topic", "none", code: 1)
  }
}
