import SluiceWire
import TestSupport
import Testing

/// Frames that announce more than comes, or more than may.
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
      // Beyond the limit: refused by the header alone.
      for length in [UInt32.max, 1 << 31, (2 << 20) + 1] as [UInt32] {
        let client = try scene.broker.client("announcer")
        try client.send(raw: header(length))
        try client.expectFault(.frameTooLarge, stream: 0)
      }
      // Within it: only what has come takes memory.
      let patient = try (0..<300).map { try scene.broker.client("patient \($0)") }
      for client in patient { try client.send(raw: header(2 << 20) + [1, 2, 3]) }
      for client in patient { client.close() }
      // That has a limit, too: a client that sends nearly all of it is disconnected when there are too many.
      let part = header(2 << 20) + [UInt8](repeating: 0, count: 1_900_000)
      let closed = try scene.broker.metric("closed_for_buffering")
      let greedy = try (0..<40).map { try scene.broker.client("greedy \($0)") }
      for client in greedy { try? client.send(raw: part) }
      // What was sent may be in the system's buffers, and not be read yet.
      try eventually("too many are disconnected") {
        try scene.broker.metric("closed_for_buffering") > closed
      }
      try eventually("the limit holds") { try scene.broker.metric("buffered_bytes") <= 32 << 20 }
      for client in greedy { client.close() }
    }
  }
}
