import Glibc
import SluiceWire
import TestSupport
import Testing

/// Settings that `sluice pub` and `sluice sub` state of their topic, in either order.
@Suite(.onItsOwnThread) struct StatedSettingsTests {
  @Test func aSubscriberThatComesFirstGetsTheTopicThatItsProducerStates() throws {
    let broker = try BrokerProcess()
    let subscriber = try broker.sluice("sub", "t")
    try eventually("the wait is told; \(subscriber.messages)") {
      subscriber.standardError.text.contains("topic t doesn't exist yet; waiting for it")
    }
    try broker.run("pub", "t", "a", "b", "--as", "replayed:3", "--complete", "--quiet")
    #expect(try subscriber.waitForExit(within: 600) == .code(0), "\(subscriber.messages)")
    #expect(subscriber.standardOutput.text == "a\nb\n")
    let shown = try broker.shown("t")
    #expect(shown["replay_records"] as? Int == 3 && shown["settings_stated"] as? Bool == true, "\(shown)")
  }

  @Test func aSubscriberThatStatesSettingsCreatesTheTopic() throws {
    let broker = try BrokerProcess()
    let subscriber = try broker.sluice("sub", "t", "--as", "replayed:3")
    try eventually("the topic; \(subscriber.messages)", every: 0.05) {
      (try? broker.show("t"))?.summary.subscriptions == 1
    }
    try broker.run("pub", "t", "a", "b", "--complete", "--quiet")
    #expect(try subscriber.waitForExit(within: 600) == .code(0), "\(subscriber.messages)")
    #expect(subscriber.standardOutput.text == "a\nb\n")
    #expect(try broker.shown("t")["replay_records"] as? Int == 3)
  }

  @Test func readingToTheEndCreatesNothing() throws {
    let broker = try BrokerProcess()
    try broker.run("sub", "t", "--as", "shared", "--until-live", code: 1)
    try broker.run("topic", "show", "t", code: 1)
  }

  @Test func twoStatementsThatDifferAreAnErrorThatNamesTheDifference() throws {
    let broker = try BrokerProcess()
    try broker.run("topic", "create", "t", "--preset", "replayed:3")
    try broker.run("pub", "t", "a", "--as", "replayed:3", "--quiet")
    let other = try broker.run("pub", "t", "b", "--as", "shared:2", code: 1)
    #expect(
      other.standardError.text.contains(
        "replay-records 2 instead of 3, scope while-connected instead of forever, flow lossless instead of free, connect auto:1 instead of immediate"
      ), "\(other.messages)")
    try broker.run("sub", "t", "--as", "replayed:4", code: 1)
    #expect(try broker.shown("t")["next_offset"] as? Int == 1)
  }

  /// The settings of a durable topic can be stated as long as no client is attached to it, and persist across a restart.
  @Test func durableTopicsKeepWhatWasStated() throws {
    let stage = try DurableStage("--storage", "durable")
    try stage.sluice("pub", "empty", "--quiet")
    try stage.sluice("pub", "used", "a", "--quiet")
    #expect(try stage.broker.shown("empty")["settings_stated"] as? Bool == false)
    try stage.sluice(
      "topic", "create", "empty", "--replay-records", "5", "--connect", "auto-stay:2", "--when-producer-lost",
      "fail:1h")
    // After the first record they are fixed.
    try stage.sluice("topic", "create", "used", "--replay-records", "5", code: 1)
    try stage.restart(SIGKILL)
    let shown = try stage.broker.shown("empty")
    #expect(shown["settings_stated"] as? Bool == true && shown["replay_records"] as? Int == 5, "\(shown)")
    #expect(shown["connect"] as? String == "auto-stay:2")
    #expect(shown["when_producer_lost"] as? String == "fail:1h")
    #expect(shown["without_producers_ms"] as? Int == 0)
    let used = try stage.broker.shown("used")
    #expect(used["settings_stated"] as? Bool == false && used["without_producers_ms"] as? Int ?? 0 > 0)
    // A preset that restarts is in memory, whatever the default is.
    try stage.sluice("topic", "create", "ticks", "--preset", "shared:2")
    #expect(try stage.broker.shown("ticks")["storage"] as? String == "memory")
  }

  @Test func rulesHavePresets() throws {
    let broker = try BrokerProcess("--topic-rule", "ticks.* preset=shared:2 flow=free")
    try broker.client().create("ticks.a")
    let shown = try broker.shown("ticks.a")
    #expect(shown["replay_records"] as? Int == 2 && shown["flow"] as? String == "free", "\(shown)")
    #expect(shown["scope"] as? String == "while-connected" && shown["connect"] as? String == "auto:1")
  }
}
