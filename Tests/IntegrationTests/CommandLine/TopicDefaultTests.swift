import TestSupport
import Testing

/// Options of `sluiced` for new topics: each setting as a default for all topics, and by a rule.
@Suite(.onItsOwnThread) struct TopicDefaultTests {
  private let directory: TemporaryDirectory
  private var data: String { directory.file("data") }

  init() throws {
    directory = try TemporaryDirectory()
  }

  /// The settings, in groups that a topic can combine, each with one value: a durable topic neither restarts nor is compacted.
  private static var groups: [[TopicSetting]] {
    var groups: [[TopicSetting]] = [[], [], [], [], []]
    for setting in TopicSetting.all {
      let places = setting.option == "storage" || setting.option == "sync" ? [2, 3] : [0, 1, 4]
      let place = places.first { place in !groups[place].contains { $0.option == setting.option } }
      groups[place!].append(setting)
    }
    return groups
  }

  @Test func everySettingIsADefault() throws {
    for group in Self.groups {
      let broker = try BrokerProcess(options: ["--data", data] + group.flatMap(\.arguments))
      try broker.run("topic", "create", "t")
      let shown = try broker.shown("t")
      for setting in group {
        #expect(setting.holds(in: shown), "\(setting.option) \(setting.value): \(shown)")
      }
      broker.process.stop()
      removeStore(data)
    }
  }

  @Test func everySettingCanBeARule() throws {
    let settings = TopicSetting.all
    let rules = settings.enumerated().flatMap { index, setting in
      ["--topic-rule", "t.\(index) \(setting.option)=\(setting.value)"]
    }
    let broker = try BrokerProcess(options: ["--data", data] + rules)
    for (index, setting) in settings.enumerated() {
      try broker.client().create("t.\(index)")
      let shown = try broker.shown("t.\(index)")
      #expect(setting.holds(in: shown), "\(setting.option) \(setting.value): \(shown)")
    }
    broker.process.stop()
    removeStore(data)
  }

  @Test func theCreatorStandsBeforeTheFirstRuleThatMatchesAndThatBeforeTheDefault() throws {
    let broker = try BrokerProcess(
      "--replay-records", "1", "--topic-rule", "a.> replay-records=2", "--topic-rule", "a.b replay-records=3")
    try broker.run("topic", "create", "a.made", "--replay-records", "4")
    for topic in ["other", "a.b", "a.c.d"] { try broker.run("pub", topic, "x", "--quiet") }
    for (topic, records) in [("other", 1), ("a.b", 2), ("a.c.d", 2), ("a.made", 4)] {
      #expect(try broker.shown(topic)["replay_records"] as? Int == records, "\(topic)")
    }
  }
}
