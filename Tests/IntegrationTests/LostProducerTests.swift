import Glibc
import SluiceWire
import TestSupport
import Testing

/// Topics whose only producer is a process that is killed.
@Suite(.onItsOwnThread) struct LostProducerTests {
  /// Starts a producer that stays attached, and waits until its first record is published.
  private func producer(on topic: String, at broker: BrokerProcess) throws -> ChildProcess {
    let producer = try broker.sluice("pub", topic, input: .open)
    try producer.write(Array("one\n".utf8))
    try eventually("a record of \(topic); \(producer.messages)", every: 0.05) {
      try broker.show(topic).summary.nextOffset == 1
    }
    return producer
  }

  @Test func theTopicFailsForItsSubscribers() throws {
    let broker = try BrokerProcess()
    try broker.run("topic", "create", "readings", "--when-producer-lost", "fail:1s")
    let subscriber = try broker.sluice("sub", "readings")
    let producer = try producer(on: "readings", at: broker)
    try subscriber.standardOutput.wait(bytes: 4)
    #expect(try broker.shown("readings")["state"] as? String == "open")
    producer.signal(SIGKILL)
    #expect(try subscriber.waitForExit(within: 600) == .code(3), "\(subscriber.messages)")
    #expect(subscriber.standardOutput.text == "one\n")
    #expect(
      subscriber.standardError.text.contains("topic readings has had no producer for"),
      "\(subscriber.messages)")
    let shown = try broker.shown("readings")
    #expect(shown["state"] as? String == "failed" && shown["failure_code"] as? Int == 126, "\(shown)")
    #expect(shown["without_producers_ms"] as? Int == 0)
    // Later subscribers get the record and the failure, too.
    try broker.run("sub", "readings", code: 3)
  }

  /// A producer that was attached when the broker was killed has to return.
  @Test func aDurableTopicFailsAfterARestartThatItsProducerMisses() throws {
    let stage = try DurableStage()
    try stage.sluice(
      "topic", "create", "t", "--storage", "durable", "--when-producer-lost", "fail:2s")
    let first = try producer(on: "t", at: stage.broker)
    stage.broker.process.signal(SIGSTOP)
    first.signal(SIGKILL)
    try first.waitForExit()
    try stage.restart(SIGKILL)
    let subscriber = try stage.broker.sluice("sub", "t")
    #expect(try subscriber.waitForExit(within: 600) == .code(3), "\(subscriber.messages)")
    #expect(subscriber.standardOutput.text == "one\n")
    let shown = try stage.broker.shown("t")
    #expect(shown["failure_code"] as? Int == 126, "\(shown)")
  }

  @Test func theLossIsShownWhileTheTopicWaits() throws {
    let broker = try BrokerProcess()
    try broker.run("topic", "create", "t", "--when-producer-lost", "fail:60m")
    let subscriber = try broker.sluice("sub", "t")
    #expect(try broker.shown("t")["without_producers_ms"] as? Int == 0)
    let first = try producer(on: "t", at: broker)
    #expect(try broker.shown("t")["without_producers_ms"] as? Int == 0)
    first.signal(SIGKILL)
    try eventually("the loss is shown", every: 0.05) {
      try #require(try broker.shown("t")["without_producers_ms"] as? Int) > 0
    }
    let table = try broker.run("topic", "show", "t").standardOutput.lines
    #expect(table.contains { $0.hasPrefix("producers ") && $0.contains(" none for ") }, "\(table)")
    // Another producer ends the loss.
    let second = try broker.sluice("pub", "t", input: .open)
    try eventually("the loss is over", every: 0.05) {
      try broker.shown("t")["without_producers_ms"] as? Int == 0
    }
    second.closeInput()
    #expect(try second.waitForExit() == .code(0), "\(second.messages)")
    #expect(subscriber.currentExit == nil)
  }
}
