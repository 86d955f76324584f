import SluiceWire
import TestSupport
import Testing

/// Floods of small frames.
@Suite(.onItsOwnThread) struct TinyFrameFloodTests {
  /// Sends `frames` repeatedly from several connections, and reads the replies.
  private func flood(
    _ name: String, times: Int, from count: Int = 4, _ frames: [UInt8],
    prepare: (RawClient) throws -> Void = { _ in }
  ) throws {
    let scene = try AttackScene(name)
    try scene.run(growingBy: 64 << 20) {
      let clients = try (0..<count).map { try scene.broker.client("flood \($0)") }
      for client in clients { try prepare(client) }
      for _ in 0..<times {
        for client in clients {
          try client.send(raw: frames)
          try client.settle()
        }
      }
      for client in clients { try client.roundTrip() }
    }
  }

  @Test func pings() throws {
    var frames: [UInt8] = []
    for token in UInt64(0)..<1000 { Ping(token: token).encode(stream: 0, into: &frames) }
    try flood("PINGs", times: 40, frames)
  }

  @Test func framesThatMayBeIgnored() throws {
    var frame = [UInt8](repeating: 0, count: FrameHeader.size)
    frame.withUnsafeMutableBytes {
      FrameHeader(length: 0, type: FrameType(rawValue: 0xE7), stream: 9).write(at: $0.baseAddress!)
    }
    try flood("frames to be ignored", times: 100, Array(repeatElement(frame, count: 2000).joined()))
  }

  @Test func demands() throws {
    var frames: [UInt8] = []
    for granted in UInt64(1)...1000 { Demand(grantedThrough: granted).encode(stream: 1, into: &frames) }
    try flood("DEMANDs", times: 50, frames) { try $0.subscribe("flooded", stream: 1, granted: 1) }
  }
}
