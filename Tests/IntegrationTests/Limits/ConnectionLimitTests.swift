import Glibc
import SluiceWire
import TestSupport
import Testing

/// Limits of connections in all and per address. A client beyond a limit gets the reason, and doesn't affect the others.
@Suite(.onItsOwnThread) struct ConnectionLimitTests {
  @Test func anAddressMayHaveSoManyAndOthersTheirs() throws {
    let broker = try BrokerProcess("--max-connections-per-address", "3")
    let first = try (0..<3).map { try broker.client("\($0)", from: "127.9.9.1") }
    for _ in 0..<4 {
      let refused = try broker.connect(from: "127.9.9.1")
      let fault = try refused.expectFault(.tooManyConnections, stream: 0)
      #expect(fault.message.contains("127.9.9.1") && fault.message.contains("3"))
      try refused.expectEnd()
    }
    #expect(try broker.metric("refused_connections_per_address") == 4)
    let second = try (0..<3).map { try broker.client("\($0)", from: "127.9.9.2") }
    for client in first + second { try client.roundTrip() }
    #expect(try broker.metric("connections") == 6)

    first[0].close()
    try eventually("there is room again") { (try? broker.client("next", from: "127.9.9.1")) != nil }
    #expect(try broker.metric("refused_connections") == 0)
  }

  @Test func withoutFilesToOpenThoseWhoAreThereGoOnAndOthersComeLater() throws {
    let broker = try BrokerProcess()
    let client = try broker.client("first")
    try client.subscribe("t", stream: 1)
    try client.openPublication("t", stream: 2)
    try setDescriptorLimit(of: broker, to: 1)
    // For the system they are connected, but they wait.
    let waiting = try (0..<10).map { _ in try broker.connect() }
    for client in waiting {
      try client.send(Hello(maximumFrame: 1 << 20, keepalive: 0, name: "waiting"), stream: 0)
    }
    for number in UInt64(1)...20 {
      try client.publish(["\(number)"], stream: 2)
      try client.receiveRecords(number, stream: 1)
      pause(0.01)
    }
    #expect(try broker.metric("connections") == 1)
    try setDescriptorLimit(of: broker, to: 1000)
    for client in waiting { _ = try client.expect(Welcome.self, stream: 0) }
  }

  /// Sets the limit of open files of a running broker.
  private func setDescriptorLimit(of broker: BrokerProcess, to soft: rlim_t) throws {
    let tool = try ChildProcess("/usr/bin/prlimit", ["--pid", "\(broker.process.pid)", "--nofile=\(soft):"])
    try require(try tool.waitForExit() == .code(0), "prlimit: \(tool.messages)")
  }

  @Test func theLimitInAllIsCounted() throws {
    let broker = try BrokerProcess("--max-connections", "2")
    let clients = try (0..<2).map { try broker.client("\($0)") }
    try broker.connect().expectFault(.tooManyConnections, stream: 0)
    #expect(try broker.metric("refused_connections") == 1)
    #expect(try broker.metric("connections_accepted") == 2)
    withExtendedLifetime(clients) {}
  }
}
