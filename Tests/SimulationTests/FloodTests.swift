import SluiceIO
import SluiceWire
import Testing

@testable import SluiceBroker

/// Whoever sends more than can be done at once waits for it himself.
@Suite struct FloodTests {
  /// What a flood of frames does to somebody who sends a PING just behind it: how much of the flood was answered before the PING was.
  private func answers(to flood: (ScriptedClient) -> Void) throws -> (before: Int, after: [FrameType]) {
    let small = try SmallWorld()
    let flooder = small.connect()
    let other = small.connect()
    flood(flooder)
    other.forget()
    other.send(Ping(token: 7), stream: 0)
    _ = small.world.run(limit: .seconds(60)) { other.types.contains(.pong) }
    let before = flooder.frames.count
    _ = small.world.run(limit: .seconds(60)) { flooder.types.last == .pong && flooder.types.contains(.done) }
    #expect(!flooder.hasEnded)
    return (before, flooder.types)
  }

  @Test func aFloodOfSubscriptionsDoesNotKeepOthersWaiting() throws {
    let count = 6_000
    let (before, after) = try answers { flooder in
      for _ in 0..<count {
        flooder.send(Subscribe(topic: "t", grantedThrough: 0), stream: 1)
        flooder.send(Cancel(), stream: 1)
      }
      flooder.send(TopicDelete(topic: "t"), stream: 1)
      flooder.send(Ping(token: 1), stream: 0)
    }
    #expect(after.count { $0 == .subscribed } == count)
    #expect(after.count { $0 == .cancelled } == count)
    #expect(before < 5 * Effort.limit, "\(before) of \(after.count) frames came before the PONG")
  }

  @Test func requestsOfAFloodAreAnsweredInTheirOrder() throws {
    let small = try SmallWorld()
    let flooder = small.connect()
    for number in 0..<3_000 {
      flooder.send(TopicCreate(topic: "t\(number)", settings: TopicSettings()), stream: UInt32(number + 1))
    }
    small.settle(.seconds(5))
    #expect(flooder.frames.filter { $0.header.type == .topicInfo }.map(\.header.stream) == Array(1...3_000))
    #expect(small.broker.core.registry.count == 3_000)
  }
}
