import SluiceWire
import TestSupport
import Testing

/// Streams that are opened and closed again, and streams that are opened up to the limit.
@Suite(.onItsOwnThread) struct StreamFloodTests {
  /// Sends the frames of `round` for each number, several hundred at a time, and reads the replies.
  private func flood(
    _ scene: AttackScene, rounds: Int, _ round: (Int, inout [UInt8]) -> Void
  ) throws {
    let clients = try (0..<3).map { try scene.broker.client("flood \($0)") }
    for start in stride(from: 0, to: rounds, by: 300) {
      var frames: [UInt8] = []
      for number in start..<min(start + 300, rounds) { round(number, &frames) }
      for client in clients {
        try client.send(raw: frames)
        try client.settle()
      }
    }
    for client in clients { try client.roundTrip() }
  }

  @Test func subscribeAndCancel() throws {
    let scene = try AttackScene("SUBSCRIBE and CANCEL")
    try scene.run(growingBy: 64 << 20) {
      try flood(scene, rounds: 6000) { number, frames in
        let stream = UInt32(number % 50 + 1)
        Subscribe(topic: "flooded.\(number % 20)", grantedThrough: .max).encode(stream: stream, into: &frames)
        Cancel().encode(stream: stream, into: &frames)
      }
    }
    #expect(try scene.broker.metric("subscriptions") == 1)
  }

  @Test func createAndDelete() throws {
    let scene = try AttackScene("TOPIC_CREATE and TOPIC_DELETE")
    try scene.run(growingBy: 64 << 20) {
      try flood(scene, rounds: 3000) { number, frames in
        let name = "flooded.\(number)"
        TopicCreate(topic: name, settings: TopicSettings()).encode(stream: 1, into: &frames)
        Cancel().encode(stream: 1, into: &frames)
        TopicDelete(topic: name).encode(stream: 2, into: &frames)
        Cancel().encode(stream: 2, into: &frames)
      }
    }
    #expect(try scene.broker.client().list(limit: 100).topics.map(\.topic) == ["bystanders"])
  }

  @Test func allThatMayBeOpen() throws {
    let scene = try AttackScene("all streams that there may be", "--max-streams", "8192")
    try scene.run(growingBy: 128 << 20, leaving: 24 << 20) {
      let clients = try (0..<2).map { try scene.broker.client("greedy \($0)") }
      for client in clients {
        let most = try #require(client.welcome?.maximumStreams)
        var frames: [UInt8] = []
        for stream in 1...most {
          if stream % 2 == 0 {
            Subscribe(topic: "open", grantedThrough: .max).encode(stream: stream, into: &frames)
          } else {
            PublishOpen(topic: "open", acknowledgement: .received).encode(stream: stream, into: &frames)
          }
        }
        try client.send(raw: frames)
        try client.settle()
        try client.roundTrip()
      }
      try eventually("they have all of them") { try scene.broker.metric("subscriptions") == 1 + 8192 }
    }
  }
}
