import Foundation
import TestSupport
import Testing

/// Copies topics with their settings, without records, from one broker to another: `sluice topic list --settings`, `sluice topic create --file`.
@Suite(.onItsOwnThread) struct TopicDefinitionCommandTests {
  private let data = try! (TemporaryDirectory(), TemporaryDirectory())

  private func settings(_ broker: BrokerProcess) throws -> String {
    try broker.run("topic", "list", "--settings").standardOutput.text
  }

  @Test func topicsAreTheSameAtABrokerWithOtherDefaults() throws {
    let first = try BrokerProcess("--data", data.0.path)
    let second = try BrokerProcess("--data", data.1.path, "--replay-records", "3", "--flow", "lossless")
    for (index, setting) in TopicSetting.all.enumerated() {
      try first.run(["topic", "create", "t.\(index)"] + setting.arguments)
    }
    try first.run("topic", "create", "häuser-\"7\"", "--keep", "2h")
    try first.run("pub", "by.use", "a", "b", "--quiet")
    let definitions = try settings(first)
    #expect(definitions.split(separator: "\n").count == TopicSetting.all.count + 2)
    let file = data.0.file("topics.jsonl")
    try definitions.write(toFile: file, atomically: true, encoding: .utf8)
    #expect(
      try second.run("topic", "create", "--file", file).standardError.text
        == "sluice: \(TopicSetting.all.count + 2) topics exist with these settings\n")
    #expect(try settings(second) == definitions)
    #expect(try second.run("sub", "by.use", "--until-live").standardOutput.text == "")
    // Repeating it changes nothing.
    let again = try second.run("topic", "create", "--file", "-", "-q", input: .bytes(Array(definitions.utf8)))
    #expect(again.standardError.text.isEmpty && again.standardOutput.text.isEmpty)
    #expect(try settings(second) == definitions)
    #expect(try first.run("topic", "list", "--settings", "--prefix", "by.").standardOutput.lines.count <= 2)
  }

  @Test func whatTheBrokerRefusesIsToldAndTheRestIsCreated() throws {
    let broker = try BrokerProcess()
    try broker.run("topic", "create", "b", "--replay-records", "5")
    let lines = #"""
      {"topic":"a","settings":{"replay-records":"1"}}
      {"topic":"b","settings":{"replay-records":"1"}}
      {"topic":"c","settings":{"storage":"durable"}}
      {"topic":"d","settings":{}}

      """#
    let run = try broker.run(
      "topic", "create", "--file", "-", input: .bytes(Array(lines.utf8)), code: 1)
    let told = run.standardError.lines.filter { !$0.isEmpty }
    #expect(
      told.count == 3 && told[0].hasPrefix("sluice: b: ") && told[1].hasPrefix("sluice: c: "), "\(told)")
    #expect(told.last == "sluice: 2 of 4 topics couldn't be created")
    #expect(try broker.run("topic", "list", "--names").standardOutput.text == "a\nb\nd\n")
    #expect(try broker.shown("b")["replay_records"] as? Int == 5)
  }

  @Test func nothingIsCreatedOfAFileWithAMistake() throws {
    let broker = try BrokerProcess()
    let lines = "{\"topic\":\"a\",\"settings\":{}}\n{\"topic\":\"b\"}\n"
    let run = try broker.run("topic", "create", "--file", "-", input: .bytes(Array(lines.utf8)), code: 2)
    #expect(run.standardError.text.contains("--file: line 2: topic b has no settings"))
    #expect(try broker.run("topic", "list", "--names").standardOutput.text.isEmpty)
    for wrong in [
      [], ["--file", data.0.file("none")], ["t", "--file", "-"], ["--file", "-", "--flow", "free"],
      ["--file", "-", "--keep", "1h"], ["--file", "-", "--json"],
    ] {
      _ = try broker.run(["topic", "create"] + wrong, code: 2)
    }
    _ = try broker.run("topic", "list", "--settings", "--names", code: 2)
  }
}
