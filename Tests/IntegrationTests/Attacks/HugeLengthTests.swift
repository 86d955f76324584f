import SluiceWire
import TestSupport
import Testing

/// Frames that announce more bytes than follow, or more than the limit.
@Suite(.onItsOwnThread) struct HugeLengthTests {
  private func header(_ length: UInt32, type: UInt8 = 0x90) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: FrameHeader.size)
    bytes.withUnsafeMutableBytes {
      FrameHeader(length: length, type: FrameType(rawValue: type), stream: 0).write(at: $0.baseAddress!)
    }
    return bytes
  }

  @Test func whatIsAnnouncedIsntHad() throws {
    let scene = try AttackScene("announced lengths", "--max-buffered", "32MiB")
    try scene.run(growingBy: 160 << 20, leaving: 24 << 20) {
      // Beyond the limit: the header alone is rejected.
      for length in [UInt32.max, 1 << 31, (2 << 20) + 1] as [UInt32] {
        let client = try scene.broker.client("announcer")
        try client.send(raw: header(length))
        try client.expectFault(.frameTooLarge, stream: 0)
      }
      // Within the limit: only received bytes use memory.
      let patient = try (0..<300).map { try scene.broker.client("patient \($0)") }
      for client in patient { try client.send(raw: header(2 << 20) + [1, 2, 3]) }
      for client in patient { client.close() }
      // Buffered bytes are limited, too: a client that sends most of a frame is disconnected if there are too many of them.
      let part = header(2 << 20) + [UInt8](repeating: 0, count: 1_900_000)
      let closed = try scene.broker.metric("closed_for_buffering")
      let greedy = try (0..<40).map { try scene.broker.client("greedy \($0)") }
      for client in greedy { try? client.send(raw: part) }
      // Sent bytes may still be in the system's buffers.
      try eventually("too many are disconnected") {
        try scene.broker.metric("closed_for_buffering") > closed
      }
      try eventually("the limit holds") { try scene.broker.metric("buffered_bytes") <= 32 << 20 }
      for client in greedy { client.close() }
    }
  }
}
