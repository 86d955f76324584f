import SluiceWire
import TestSupport
import Testing

/// Subscribers with unlimited demand that never read, but send PINGs.
@Suite(.onItsOwnThread) struct ZeroWindowTests {
  @Test func whoReadsNothingHoldsNothingForLong() throws {
    let scene = try AttackScene(
      "subscribers that don't read", "--write-timeout", "2s", "--replay-bytes", "8MiB")
    let batch = [[UInt8]](repeating: [UInt8](repeating: 3, count: 32_000), count: 16)
    // The freed memory of topics is kept for new records, up to 64 MiB.
    try scene.run(growingBy: 160 << 20, leaving: 64 << 20) {
      let busy = try scene.broker.client("busy")
      try busy.openPublication("busy", stream: 1)
      let stuck = try (0..<40).map { try scene.broker.client("stuck \($0)", receiveBuffer: 2048) }
      for client in stuck { try client.send(Subscribe(topic: "busy", grantedThrough: .max), stream: 1) }
      // Many times the memory of the system's buffers and the topic.
      for _ in 0..<100 {
        try busy.publish(batch, stream: 1)
        for client in stuck { _ = try? ping(client) }
      }
      try busy.receiveAcknowledgements(stream: 1)
      try eventually("they are given up, whatever they send", within: 300) {
        for client in stuck { _ = try? ping(client) }
        return try scene.broker.metric("connections") <= 3
      }
      try busy.cancel(stream: 1)
      try busy.delete("busy")
    }
    #expect(try scene.broker.metric("write_timeouts") > 0)
  }

  /// Sends a PING without reading.
  private func ping(_ client: RawClient) throws {
    _ = try Ping(token: 1).encoded(stream: 0).withUnsafeBytes { try client.socket.write($0) }
  }
}
