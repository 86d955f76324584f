import Glibc
import SluiceWire
import TestSupport
import Testing

/// `sluice pub` and `sluice sub` after a lost connection: they resume at their positions.
@Suite(.onItsOwnThread) struct ToolReconnectTests {
  private static func lines(_ numbers: Range<Int>) -> String {
    numbers.map { "\($0)\n" }.joined()
  }

  /// The whole topic, as a late subscriber gets it.
  private func content(of topic: String, at broker: BrokerProcess) throws -> String {
    let process = try broker.sluice("sub", topic, "--until-live")
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    return process.standardOutput.text
  }

  @Test(arguments: [SIGKILL, SIGTERM])
  func aPipelineOutlivesItsBroker(signal: Int32) throws {
    var broker = try BrokerProcess()
    let address = broker.address
    try broker.client().create("t")
    let subscriber = try broker.sluice("sub", "t")
    try broker.waitForSubscriptions(1, on: "t")
    let publisher = try broker.sluice("pub", "t", "--complete", input: .open)
    try publisher.write(Array("one\ntwo\n".utf8))
    try subscriber.standardOutput.wait(bytes: 8)
    broker.process.signal(signal)
    try broker.process.waitForExit()
    try eventually("the loss is told; \(subscriber.messages)") {
      subscriber.standardError.text.contains("trying again")
        && publisher.standardError.text.contains("trying again")
    }
    try publisher.write(Array("three\n".utf8))
    broker = try BrokerProcess("--listen", address)
    publisher.closeInput()
    #expect(try publisher.waitForExit(within: 60) == .code(0), "\(publisher.messages)")
    #expect(try subscriber.waitForExit(within: 60) == .code(0), "\(subscriber.messages)")
    // The successor's topic also contains the records that were unacknowledged when the broker was killed.
    #expect(subscriber.standardOutput.text.hasPrefix("one\ntwo\n"))
    #expect(subscriber.standardOutput.text.hasSuffix("three\n"))
    for process in [subscriber, publisher] {
      #expect(process.standardError.text.contains("connected to \(address)"), "\(process.messages)")
    }
    #expect(subscriber.standardError.text.contains("recreated"))
  }

  @Test func aSecondServerTakesOver() throws {
    let (first, second) = (try BrokerProcess(), try BrokerProcess())
    let publisher = try ChildProcess.sluice(
      ["pub", "t", "--quiet"], server: "\(first.address),\(second.address)", input: .open)
    try publisher.write(Array("one\n".utf8))
    try eventually("the first record") { (try? first.show("t").summary.nextOffset) == 1 }
    first.process.signal(SIGKILL)
    try first.process.waitForExit()
    try publisher.write(Array("two\n".utf8))
    publisher.closeInput()
    #expect(try publisher.waitForExit(within: 60) == .code(0), "\(publisher.messages)")
    #expect(publisher.standardError.text == "")
    #expect(try content(of: "t", at: second).hasSuffix("two\n"))
  }

  @Test func aServerThatIsNotThereIsPassedOver() throws {
    let gone = try BrokerProcess()
    gone.process.stop()
    let broker = try BrokerProcess()
    let process = try ChildProcess.sluice(
      ["pub", "t", "--server", gone.address, "--server", broker.address, "--quiet", "one"], server: "none:1")
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    #expect(try content(of: "t", at: broker) == "one\n")
  }

  /// The process stops for longer than the broker waits, as with SIGSTOP or swapping.
  @Test func aSubscriberThatWasStoppedMissesNothing() throws {
    let broker = try BrokerProcess("--keepalive", "1s")
    try broker.client().publishAll((0..<1_000).map { "\($0)" }, to: "t")
    let subscriber = try broker.sluice("sub", "t", "--lag", "fail")
    try subscriber.standardOutput.wait(bytes: Self.lines(0..<1_000).utf8.count)
    subscriber.signal(SIGSTOP)
    try broker.waitForSubscriptions(0, on: "t")
    try broker.client().publishAll((1_000..<3_000).map { "\($0)" }, to: "t")
    subscriber.signal(SIGCONT)
    try broker.waitForSubscriptions(1, on: "t")
    try broker.client().publishAll((3_000..<3_100).map { "\($0)" }, to: "t")
    try broker.client().end("t")
    #expect(try subscriber.waitForExit(within: 60) == .code(0), "\(subscriber.messages)")
    #expect(subscriber.standardOutput.text == Self.lines(0..<3_100))
  }

  @Test func aProducerThatWasStoppedPublishesEverythingOnce() throws {
    let broker = try BrokerProcess("--keepalive", "1s", "--producer-window", "16")
    let text = Self.lines(0..<4_000)
    let publisher = try broker.sluice("pub", "t", "--rate", "2000", input: .bytes(Array(text.utf8)))
    for round in 1...2 as ClosedRange<UInt64> {
      try eventually("a part of it") { ((try? broker.show("t").summary.nextOffset) ?? 0) > round * 1_000 }
      publisher.signal(SIGSTOP)
      try eventually("the producer is given up") { try broker.show("t").summary.publications == 0 }
      publisher.signal(SIGCONT)
    }
    #expect(try publisher.waitForExit(within: 120) == .code(0), "\(publisher.messages)")
    #expect(try content(of: "t", at: broker) == text)
  }
}
