import Glibc
import SluiceWire
import TestSupport
import Testing

/// Why a subscriber lags: its client requests nothing, doesn't read, or can't be reached.
@Suite(.onItsOwnThread) struct SlownessTests {
  private static let patient = ["--keepalive", "1h", "--write-timeout", "1h", "--replay-bytes", "64MiB"]

  /// More than the sockets' buffers.
  private func publishMuch(_ broker: BrokerProcess) throws {
    try broker.publish(batches: 32, ofRecords: 16, bytes: 32_000)
  }

  private func subscriber(_ name: String, _ broker: BrokerProcess) throws -> TopicInfo.Subscription? {
    try broker.show("t").subscriptions.first { $0.client.hasPrefix(name) }
  }

  @Test func aClientThatDoesNotAskIsToldFromOneThatDoesNotRead() throws {
    let broker = try BrokerProcess(options: Self.patient)
    let (idle, stuck) = (try broker.client("idle"), try broker.client("stuck", receiveBuffer: 2048))
    try idle.subscribe("t", stream: 1, granted: 0)
    try stuck.send(Subscribe(topic: "t", grantedThrough: .max), stream: 1)
    try publishMuch(broker)
    try eventually("the client that doesn't read is found") {
      try subscriber("stuck", broker)?.slowness == .client
    }
    let slow = try #require(try subscriber("stuck", broker))
    #expect(slow.slow > 0 && slow.age > 0, "\(slow)")
    let waiting = try #require(try subscriber("idle", broker))
    #expect(waiting.slowness == .demand && waiting.slow > 0 && waiting.age > 0, "\(waiting)")
    let why = try broker.run("why", "t").standardOutput.text
    #expect(why.contains("the client hasn't read what it was sent for "), "\(why)")
    #expect(why.contains("has requested none of them for "), "\(why)")
    let table = try broker.run("topic", "show", "t").standardOutput.text
    #expect(table.contains("client doesn't read, for ") && table.contains("has requested nothing, for "))
    let object = try broker.run("topic", "show", "t", "--json").standardOutput.text
    #expect(object.contains(#""slowness":"client""#) && object.contains(#""slowness":"demand""#), "\(object)")
    withExtendedLifetime((idle, stuck)) {}
  }

  /// The broker distinguishes an HTTP reader that has stopped from one with a slow network, as with the native protocol.
  @Test(.enabled(if: access("/usr/bin/curl", X_OK) == 0, "curl isn't installed"))
  func aReaderByHTTPThatDoesNotReadIsFound() throws {
    let broker = try BrokerProcess(options: Self.patient + ["--listen", "http://127.0.0.1:0"])
    try broker.client().create("t")
    let reader = try ChildProcess("/usr/bin/curl", ["-sN", "\(broker.addresses[1])/topics/t?from=earliest"])
    try broker.waitForSubscriptions(1, on: "t")
    reader.signal(SIGSTOP)
    defer {
      reader.signal(SIGCONT)
      reader.stop()
    }
    try publishMuch(broker)
    try eventually("the client that doesn't read is found") {
      try broker.show("t").subscriptions.first?.slowness == .client
    }
    let why = try broker.run("why", "t").standardOutput.text
    #expect(why.contains("the client hasn't read what it was sent for "), "\(why)")
  }

  @Test(.enabled(if: PulledCable.isPossible, "needs to be root, and network namespaces"))
  func aNetworkThatIsGoneIsToldFromAClientThatDoesNotRead() throws {
    let cable = try PulledCable.laid()
    let broker = try BrokerProcess(
      options: Self.patient + ["--listen", "\(cable.near):0", "--allow-unauthenticated"])
    try broker.client().create("t")
    let process = try SilentProcess(
      connectingTo: broker.addresses[1], topic: "t", through: cable.command, keepalive: 3_600_000)
    try eventually("it has subscribed; \(process.process.messages)") {
      try broker.show("t").summary.subscriptions == 1
    }
    try cable.pull()
    try publishMuch(broker)
    try eventually("the network is found") {
      try broker.show("t").subscriptions.first?.slowness == .network
    }
  }
}
