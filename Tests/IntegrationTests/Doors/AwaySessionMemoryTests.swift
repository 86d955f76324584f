import Glibc
import TestSupport
import Testing

/// The broker's memory for MQTT sessions whose clients are disconnected.
///
/// `SLUICE_AWAY_SESSIONS` sets the number of sessions; without it the tests are skipped.
@Suite(
  .onItsOwnThread, .enabled(if: AwaySessions.count > 0, "SLUICE_AWAY_SESSIONS isn't set"))
struct AwaySessionMemoryTests {
  private static let topics = 10
  /// In bytes, for a session with positions in all topics. With 10,000 sessions, this includes the memory in which the store has written.
  private static let most = 1024

  @Test(arguments: [false, true]) func aSessionThatIsAwayTakesLittle(isStored: Bool) throws {
    let directory = try TemporaryDirectory()
    let data = directory.file("data")
    defer { removeStore(data) }
    let broker = try BrokerProcess(
      options: ["--listen", "mqtt://127.0.0.1:0", "--replay-records", "100", "--loops", "2"]
        + (isStored ? ["--data", data] : []))
    let address = String(try #require(broker.addresses.last).dropFirst("mqtt://".count))
    for _ in 0..<2 { try traffic(broker) }
    // The first round allocates the memory that connections use temporarily; the allocator keeps it.
    try visits(address, expiry: 0)
    try settle(broker)
    let before = try broker.memory.anonymous
    try visits(address, expiry: 86_400)
    try settle(broker)
    let after = try broker.memory.anonymous
    // This memory belongs to the topics, whatever the number of sessions.
    try traffic(broker)
    let place = isStored ? "stored" : "in memory"
    print(
      "\(AwaySessions.count) sessions that are away, \(place): \((after - before) / AwaySessions.count) bytes each"
    )
    #expect(after - before <= AwaySessions.count * Self.most)

    // The sessions exist, and get the new messages.
    let client = try RawMQTT(address)
    try client.send(RawMQTT.connect("client \(AwaySessions.count / 2)", expiry: 86_400, isClean: false))
    #expect(try client.receive().body[0] == 1)
    #expect(try client.receive().type & 0xF0 == 0x30)
  }

  /// Publishes as many records as an hour brings; the topics retain the last ones.
  private func traffic(_ broker: BrokerProcess) throws {
    let client = try broker.client("traffic")
    let payload = String(repeating: "x", count: 100)
    for topic in 0..<Self.topics {
      try client.publishAll([String](repeating: payload, count: 3600), to: "sensors.number\(topic).value")
    }
  }

  private func visits(_ address: String, expiry: UInt32) throws {
    for start in stride(from: 0, to: AwaySessions.count, by: 100) {
      let clients = try (start..<min(start + 100, AwaySessions.count)).map { number in
        let client = try RawMQTT(address)
        try client.send(RawMQTT.connect("client \(number)", expiry: expiry))
        try client.send(RawMQTT.subscribe(1, ["sensors/+/value"]))
        return client
      }
      for client in clients {
        try require(try client.receive().body[1] == 0, "a client was refused")
        try require(try client.receive().body.last == 1, "a subscription was refused")
        try client.send(RawMQTT.packet(0xE0, []))
      }
      for client in clients { #expect(throws: RawSocket.Closed.self) { try client.receive() } }
    }
  }

  private func settle(_ broker: BrokerProcess) throws {
    // The broker's own connections, for its stored topics, remain.
    try eventually("all clients are gone") { try broker.metric("connections") <= 4 }
    pause(2)
  }
}

private enum AwaySessions {
  static var count: Int { getenv("SLUICE_AWAY_SESSIONS").flatMap { Int(String(cString: $0)) } ?? 0 }
}
