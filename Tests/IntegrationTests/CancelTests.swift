import Glibc
import SluiceWire
import TestSupport
import Testing

/// The broker removes a subscription, however its subscriber leaves.
@Suite(.onItsOwnThread) struct CancelTests {
  // MARK: By its own will

  @Test func cancelFreesTheSubscriptionByTheTimeItIsConfirmed() throws {
    let broker = try BrokerProcess()
    let client = try broker.client()
    let observer = try broker.client("observer")
    for granted in [0, 5, UInt64.max] {
      try client.subscribe("t", stream: 1, granted: granted)
      #expect(try observer.show("t").summary.subscriptions == 1)
      try client.cancel(stream: 1)
      #expect(client.events(1).last == .cancelled)
      #expect(try observer.show("t").summary.subscriptions == 0)
      #expect(try observer.show("t").subscriptions.isEmpty)
    }
    try client.openPublication("t", stream: 2)
    #expect(try observer.show("t").summary.publications == 1)
    try client.cancel(stream: 2)
    #expect(try observer.show("t").summary.publications == 0)
  }

  @Test func nothingComesAfterTheConfirmation() throws {
    let broker = try BrokerProcess()
    let client = try broker.client()
    let producer = try broker.client("producer")
    try producer.openPublication("t", stream: 1)
    for round in 0..<50 {
      try client.subscribe("t", stream: 1, from: .new)
      for _ in 0..<5 { try producer.publish(["\(round)", "\(round)"], stream: 1) }
      // Records are on their way; the ledger fails on any frame after CANCELLED.
      try client.cancel(stream: 1)
      try client.roundTrip()
    }
    #expect(try client.show("t").summary.subscriptions == 0)
  }

  @Test func whatWasAcknowledgedStaysWhenAPublicationIsCancelled() throws {
    let client = try BrokerProcess().client()
    try client.openPublication("t", stream: 1)
    try client.publish(["a", "b"], stream: 1)
    try client.send(Cancel(), stream: 1)
    try client.receive(until: "CANCELLED") { client.publications[1]!.end == .cancelled }
    try client.subscribe("t", stream: 1)
    try client.receiveRecords(2, stream: 1)
    #expect(client.subscriptions[1]!.texts == ["a", "b"])
    #expect(try client.show("t").summary.ending == nil)
  }

  // MARK: With its connection

  enum Leaving: CaseIterable {
    case close, reset, halfClose
  }

  @Test(arguments: Leaving.allCases)
  func aConnectionThatEndsFreesAllThatItHad(how: Leaving) throws {
    let broker = try BrokerProcess()
    let observer = try broker.client("observer")
    let client = try broker.client()
    for stream in UInt32(1)...20 { try client.subscribe("t", stream: stream, granted: UInt64(stream)) }
    try client.openPublication("t", stream: 21)
    try observer.publishAll((0..<50).map { "\($0)" }, to: "t")
    #expect(try observer.show("t").summary.subscriptions == 20)
    switch how {
    case .close: client.socket.close()
    case .reset: client.socket.reset()
    case .halfClose: client.socket.endOutput()
    }
    try eventually("all is freed") {
      let info = try observer.show("t")
      return info.summary.subscriptions == 0 && info.summary.publications == 0
    }
  }

  @Test func aClientThatIsKilledIsNoticedAtOnce() throws {
    // Without a keepalive, the system reports the end of the connection.
    let broker = try BrokerProcess("--keepalive", "0")
    try broker.client().create("t")
    let process = try SilentProcess(of: broker, topic: "t")
    try eventually("it has subscribed") { try broker.show("t").summary.subscriptions == 1 }
    process.process.signal(SIGKILL)
    try eventually("it is freed") { try broker.show("t").summary.subscriptions == 0 }
  }

  // MARK: Without a word

  /// In milliseconds. The test's steps before its client falls silent must take less, even on a slow machine. The simulation, which controls time,
  /// tests that the broker keeps clients that send.
  private static let deadline: UInt32 = 6_000

  @Test func aClientThatFallsSilentIsGivenUp() throws {
    let broker = try BrokerProcess("--keepalive", "1h")
    // The client requests a shorter deadline than the broker's, but long enough for its steps before it falls silent.
    let silent = try broker.client("silent", keepalive: Self.deadline)
    #expect(silent.welcome!.keepalive == Self.deadline)
    try silent.subscribe("t", stream: 1)
    try silent.openPublication("t", stream: 2)
    silent.answersPings = false

    // Finally the broker sends an error, in case the client still reads. The PING before it is tested in the simulation: a broker that was itself
    // delayed no longer sends one.
    try silent.expectFault(.keepaliveTimeout, stream: 0)
    #expect(throws: RawSocket.Closed.self) { try silent.receive() }
    let info = try broker.show("t")
    #expect(info.summary.subscriptions == 0)
    #expect(info.summary.publications == 0)
  }

  @Test func aSubscriberThatDoesntReadIsGivenUpAndTheOthersAreNotDelayed() throws {
    let broker = try BrokerProcess("--keepalive", "1h", "--replay-bytes", "1MiB")
    let stuck = try broker.client("stuck", keepalive: Self.deadline, receiveBuffer: 8192)
    try stuck.sendSubscribe("t", stream: 1)
    let client = try broker.client("reader")
    try client.subscribe("t", stream: 1)
    client.subscriptions[1]!.keepsPayloads = false
    try meanwhile {
      let producer = try broker.client("producer")
      try producer.openPublication("t", stream: 1)
      let payloads = [[UInt8]](repeating: [UInt8](repeating: 1, count: 16384), count: 8)
      for _ in 0..<256 { try producer.publish(payloads, stream: 1) }
      try producer.receiveAcknowledgements(stream: 1)
    } _: {
      // A fast producer may cause lag, but the subscriber reaches the end.
      try client.receive(until: "the last record") { client.subscriptions[1]!.nextOffset == 2048 }
    }
    try eventually("it is freed") { try client.show("t").summary.subscriptions == 1 }
  }

  @Test(.enabled(if: PulledCable.isPossible, "needs to be root, and network namespaces"))
  func aCableThatIsPulledIsNoticedByTheDeadline() throws {
    let cable = try PulledCable.laid()
    let broker = try BrokerProcess(
      "--keepalive", "1h", "--listen", "\(cable.near):0", "--allow-unauthenticated")
    try broker.client().create("t")
    let address = broker.addresses[1]
    let process = try SilentProcess(
      connectingTo: address, topic: "t", through: cable.command, keepalive: Self.deadline)
    try eventually("it has subscribed; \(process.process.messages)") {
      try broker.show("t").summary.subscriptions == 1
    }
    try cable.pull()
    // Records that can no longer be sent don't count as activity.
    try broker.client().publishAll((0..<100).map { "\($0)" }, to: "t")
    try eventually("it is freed") { try broker.show("t").summary.subscriptions == 0 }
  }
}
