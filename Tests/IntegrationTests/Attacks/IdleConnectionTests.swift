import Glibc
import SluiceWire
import TestSupport
import Testing

/// Ten thousand idle connections.
@Suite(.onItsOwnThread) struct IdleConnectionTests {
  private static let count = 10_000

  @Test func tenThousandThatDoNothingCostLittle() throws {
    let scene = try AttackScene(
      "10,000 idle connections", "--max-connections-per-address", "16384")
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    guard limit.rlim_cur >= Self.count + 1000 else {
      return print("10,000 idle connections: not tried, for the limit on open files is \(limit.rlim_cur)")
    }
    let hello = Hello(maximumFrame: 1 << 20, keepalive: 0, name: "idle").encoded(stream: 0)
    // Another test measures the memory per connection; this one checks that other clients are unaffected.
    try scene.run(growingBy: 128 << 20, leaving: 24 << 20) {
      let sockets = try (0..<Self.count).map { _ in
        let socket = try RawSocket(scene.broker.address)
        _ = try hello.withUnsafeBytes { try socket.write($0) }
        return socket
      }
      try eventually("all are connected", within: 300) {
        try scene.broker.metric("connections") == Self.count + 2
      }
      pause(0.5)
      for socket in sockets { socket.close() }
    }
  }
}
