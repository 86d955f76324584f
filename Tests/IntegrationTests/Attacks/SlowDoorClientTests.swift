import TestSupport
import Testing

/// Gateway clients that send a valid request one byte at a time.
@Suite(.onItsOwnThread) struct SlowDoorClientTests {
  private static let openings: [String: [UInt8]] = [
    "http": Array("GET /topics/t?from=earliest HTTP/1.1\r\n".utf8),
    "ws": Array("GET / HTTP/1.1\r\nHost: b\r\nUpgrade: websocket\r\n".utf8),
    "mqtt": RawMQTT.connect("a client with a name that is long enough"),
  ]

  @Test(arguments: ["http", "ws", "mqtt"]) func slowClientsKeepNobodyOut(door: String) throws {
    let scene = try AttackScene(
      "slow clients at the door of \(door)", "--handshake", "3s", "--listen", "\(door)://127.0.0.1:0")
    let address = try #require(scene.broker.addresses.last).dropFirst("\(door)://".count)
    let opening = try #require(Self.openings[door])
    let before = try scene.broker.metric("handshake_timeouts")
    try scene.run(growingBy: 64 << 20) {
      let sockets = try (0..<1000).map { _ in try RawSocket(String(address)) }
      for byte in opening.prefix(8) {
        for socket in sockets {
          // The broker may have closed the connection by now.
          _ = try? [byte].withUnsafeBytes { try socket.write($0) }
        }
        try scene.broker.client("newcomer", from: "127.4.4.6").roundTrip()
      }
      try eventually("they are told that it takes too long", within: 300) {
        try scene.broker.metric("connections") <= 2
      }
    }
    #expect(try scene.broker.metric("handshake_timeouts") - before > 500)
  }
}
