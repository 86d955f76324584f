import SluiceWire
import TestSupport
import Testing

/// Thousands of clients that send a byte from time to time and never complete their handshake.
@Suite(.onItsOwnThread) struct SlowLorisTests {
  private static let hello = Hello(maximumFrame: 1 << 20, keepalive: 0, name: "slow").encoded(stream: 0)

  @Test func slowHandshakesKeepNobodyOut() throws {
    let scene = try AttackScene("slow handshakes", "--handshake", "3s")
    let before = try scene.broker.metric("handshake_timeouts")
    try scene.run(growingBy: 64 << 20) {
      let sockets = try (0..<2000).map { _ in try RawSocket(scene.broker.address) }
      for position in 0..<8 {
        for socket in sockets {
          // The broker may have closed the connection by now.
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

  @Test func slowTLSHandshakesKeepNobodyOut() throws {
    let certificates = try TestCertificates.shared()
    let scene = try AttackScene(
      "slow TLS handshakes", "--handshake", "3s", "--listen", "tls://127.0.0.1:0", "--tls-cert",
      certificates.server, "--tls-key", certificates.serverKey)
    let address = try #require(scene.broker.addresses.last).dropFirst("tls://".count)
    let before = try scene.broker.metric("handshake_timeouts")
    // Eight bytes of a ClientHello of 512. OpenSSL's memory for each connection fragments the heap, which grows until the fourth round.
    let hello: [UInt8] = [0x16, 3, 1, 2, 0, 1, 0, 1]
    try scene.run(growingBy: 96 << 20, leaving: 48 << 20) {
      let sockets = try (0..<1000).map { _ in try RawSocket(String(address)) }
      for position in hello.indices {
        for socket in sockets {
          _ = try? [hello[position]].withUnsafeBytes { try socket.write($0) }
        }
        try scene.broker.client("newcomer", from: "127.4.4.5").roundTrip()
      }
      try eventually("they are given up", within: 300) { try scene.broker.metric("connections") <= 2 }
    }
    #expect(try scene.broker.metric("handshake_timeouts") - before > 500)
  }
}
