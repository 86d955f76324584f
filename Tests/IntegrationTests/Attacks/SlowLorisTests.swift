import SluiceWire
import TestSupport
import Testing

/// Thousands who never finish introducing themselves, a byte now and then.
@Suite(.onItsOwnThread) struct SlowLorisTests {
  private static let hello = Hello(maximumFrame: 1 << 20, keepalive: 0, name: "slow").encoded(stream: 0)

  @Test func slowHandshakesKeepNobodyOut() throws {
    let scene = try AttackScene("slow handshakes", "--handshake", "3s")
    let before = try scene.broker.metric("handshake_timeouts")
    try scene.run(growingBy: 64 << 20) {
      let sockets = try (0..<2000).map { _ in try RawSocket(scene.broker.address) }
      for position in 0..<8 {
        for socket in sockets {
          // The broker may have had enough of it by now.
          _ = try? [Self.hello[position]].withUnsafeBytes { try socket.write($0) }
        }
        try scene.broker.client("newcomer", from: "127.4.4.4").roundTrip()
      }
      try eventually("they are told that it takes too long", within: 300) {
        try scene.broker.metric("connections") <= 2
      }
    }
    #expect(try scene.broker.metric("handshake_timeouts") - before > 1000)
  }
}
