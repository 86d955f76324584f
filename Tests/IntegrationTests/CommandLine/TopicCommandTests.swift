import Foundation
import SluiceWire
import TestSupport
import Testing

/// `sluice topic`, and its output with `--json`.
@Suite(.onItsOwnThread) struct TopicCommandTests {
  @Test func everySettingIsMadeAndShown() throws {
    let data = try TemporaryDirectory()
    let broker = try BrokerProcess("--data", data.path)
    try broker.run("topic", "create", "plain")
    let plain = try broker.shown("plain")
    for (index, setting) in TopicSetting.all.enumerated() {
      let create = ["topic", "create", "t.\(index)", "--json"] + setting.arguments
      let made = try object(try broker.run(create).standardOutput.text)
      for answer in [made, try broker.shown("t.\(index)")] {
        #expect(setting.holds(in: answer), "\(setting.option) \(setting.value): \(answer)")
      }
      // It differs from the value without the option.
      #expect(!setting.holds(in: plain), "\(setting.option) \(setting.value)")
    }
    let shown = try broker.run("topic", "show", "t.0").standardOutput.lines
    let names = Set(shown.compactMap { $0.split(separator: " ").first.map(String.init) })
    #expect(names.isSuperset(of: TopicSetting.all.map(\.option)), "\(shown)")
  }

  @Test func keepIsAnAgeAndMore() throws {
    let data = try TemporaryDirectory()
    let broker = try BrokerProcess("--data", data.path, "--replay-records", "5")
    try broker.run("topic", "create", "memory", "--keep", "24h")
    try broker.run("topic", "create", "disk", "--keep", "24h", "--storage", "durable")
    try broker.run(
      "topic", "create", "both", "--keep", "24h", "--storage", "durable", "--replay-bytes", "1MiB")
    let (memory, disk, both) = (
      try broker.shown("memory"), try broker.shown("disk"), try broker.shown("both")
    )
    for topic in [memory, disk, both] { #expect(topic["replay_age_ms"] as? Int == 86_400_000) }
    #expect(memory["replay_records"] as? Int == 5 && memory["replay_bytes"] as? Int == 64 << 20)
    #expect(disk["replay_records"] is NSNull && disk["replay_bytes"] is NSNull)
    #expect(both["replay_records"] is NSNull && both["replay_bytes"] as? Int == 1 << 20)
    try broker.run("topic", "create", "all", "--keep", "everything")
    #expect(try broker.shown("all")["replay_age_ms"] is NSNull)
  }

  @Test func whatIsThereAlreadyIsLeftAsItIs() throws {
    let broker = try BrokerProcess()
    try broker.run("topic", "create", "t", "--replay-records", "5")
    try broker.run("topic", "create", "t", "--replay-records", "5")
    let other = try broker.run("topic", "create", "t", "--replay-records", "6", code: 1)
    #expect(other.standardError.lines.count == 1)
    #expect(try broker.shown("t")["replay_records"] as? Int == 5)
  }

  @Test func topicsEndAndGo() throws {
    let broker = try BrokerProcess()
    for topic in ["finished", "failed", "open"] { try broker.run("pub", topic, "a", "b", "--quiet") }
    #expect(try broker.run("topic", "complete", "finished").standardOutput.text == "")
    #expect(try broker.run("topic", "fail", "failed", "no more").standardOutput.text == "")
    let lines = try broker.run("topic", "list", "--json").standardOutput.lines.map(object)
    #expect(lines.map { $0["topic"] as? String } == ["failed", "finished", "open"])
    #expect(lines.map { $0["state"] as? String } == ["failed", "finished", "open"])
    #expect(lines.allSatisfy { $0["records"] as? Int == 2 && $0["next_offset"] as? Int == 2 })
    #expect(try broker.shown("failed")["failure"] as? String == "no more")
    #expect(try broker.run("sub", "finished").standardOutput.text == "a\nb\n")
    try broker.run("sub", "failed", code: 3)
    let table = try broker.run("topic", "list").standardOutput.lines
    #expect(table.count == 4 && table[0].hasPrefix("TOPIC ") && table[1].hasPrefix("failed "))

    try broker.run("topic", "delete", "open", "--yes")
    try broker.run("topic", "show", "open", code: 1)
    #expect(try broker.run("topic", "list", "--json").standardOutput.lines.count == 2)
    // A mistyped name doesn't create a topic in order to end it.
    for command in [["complete", "nothing"], ["fail", "nothing", "x"], ["delete", "nothing", "--yes"]] {
      #expect(try broker.run(["topic"] + command, code: 1).standardError.text.contains("nothing"))
    }
    #expect(try broker.run("topic", "list", "--json").standardOutput.lines.count == 2)
    #expect(try broker.run("topic", "complete", "finished", code: 1).standardError.lines.count == 1)
  }

  @Test func producersAreAskedWhenSomebodyConnects() throws {
    let broker = try BrokerProcess()
    func granted() throws -> Int? {
      (try broker.shown("race")["publications"] as? [[String: Any]])?.first?["granted"] as? Int
    }
    try broker.run("topic", "create", "race", "--connect", "manual")
    let first = try broker.sluice("pub", "race", "a", "--quiet")
    try eventually("a producer that waits", every: 0.05) { try granted() == 0 }
    #expect(try broker.run("topic", "connect", "race").standardOutput.text == "")
    #expect(try first.waitForExit() == .code(0), "\(first.messages)")

    #expect(try broker.run("topic", "disconnect", "race").standardOutput.text == "")
    let second = try broker.sluice("pub", "race", "b", "--quiet")
    try eventually("a producer that waits", every: 0.05) { try granted() == 0 }
    #expect(try broker.shown("race")["next_offset"] as? Int == 1)
    try broker.run("topic", "connect", "race")
    #expect(try second.waitForExit() == .code(0), "\(second.messages)")
    #expect(try broker.shown("race")["next_offset"] as? Int == 2)
  }
}
