import SluiceWire
import TestSupport
import Testing

/// How many may be connected: in all and from one address. Who is one too many is told so, and costs the others nothing.
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

  @Test func theLimitInAllIsCounted() throws {
    let broker = try BrokerProcess("--max-connections", "2")
    let clients = try (0..<2).map { try broker.client("\($0)") }
    try broker.connect().expectFault(.tooManyConnections, stream: 0)
    #expect(try broker.metric("refused_connections") == 1)
    #expect(try broker.metric("connections_accepted") == 2)
    withExtendedLifetime(clients) {}
  }
}
