import Glibc
import TestSupport
import Testing

/// What sessions of MQTT take of the broker's memory while their clients are away.
///
/// `SLUICE_AWAY_SESSIONS` says how many there are; without it nothing is measured.
@Suite(
  .onItsOwnThread, .enabled(if: AwaySessions.count > 0, "SLUICE_AWAY_SESSIONS isn't set"))
struct AwaySessionMemoryTests {
  private static let topics = 10
  /// In bytes, of a session with places in all of them. With 10,000 sessions, what the store has written with is among that.
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
    // What comes and goes with connections is there before, in the allocator's pockets.
    try visits(address, expiry: 0)
    try settle(broker)
    let before = try broker.memory.anonymous
    try visits(address, expiry: 86_400)
    try settle(broker)
    let after = try broker.memory.anonymous
    // What this takes is the topics' own, whatever sessions there are.
    try traffic(broker)
    let place = isStored ? "stored" : "in memory"
    print(
      "\(AwaySessions.count) sessions that are away, \(place): \((after - before) / AwaySessions.count) bytes each"
    )
    #expect(after - before <= AwaySessions.count * Self.most)

    // They are there, and are owed what has come.
    let client = try RawMQTT(address)
    try client.send(RawMQTT.connect("client \(AwaySessions.count / 2)", expiry: 86_400, isClean: false))
    #expect(try client.receive().body[0] == 1)
    #expect(try client.receive().type & 0xF0 == 0x30)
  }

  /// As many records as an hour brings, of which the last ones stay.
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
    // The broker's own connections, for what it stores, are left.
    try eventually("all clients are gone") { try broker.metric("connections") <= 4 }
    pause(2)
  }
}

private enum AwaySessions {
  static var count: Int { getenv("SLUICE_AWAY_SESSIONS").flatMap { Int(String(cString: $0)) } ?? 0 }
}
