import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// The keepalive deadline measures the client's silence, excluding the time that the broker takes for the client's own frames.
@Suite struct BusyBrokerTests {
  /// Runs one turn of the broker after each `pause`, and answers its PINGs, until `isDone` returns true or the connection has ended.
  private func crawl(
    _ small: SmallWorld, _ client: ScriptedClient, pause: Duration, turns: Int, until isDone: () -> Bool
  ) throws {
    for _ in 0..<turns where !isDone() && !client.hasEnded {
      small.world.loops[0].stall(for: pause)
      small.settle(pause)
      for frame in client.frames where frame.header.type == .ping {
        client.send(Pong(token: try frame.decoded(Ping.self).token), stream: 0)
      }
    }
  }

  @Test func aClientIsNotGivenUpWhileItsOwnFramesAreWorkedThrough() throws {
    var conditions = SimulatedConditions.calm
    conditions.bufferSize = 1 << 21
    let small = try SmallWorld(conditions: conditions)
    let client = small.connect(keepalive: 1_000)
    let observer = small.connect()
    let count = 12_000
    for _ in 0..<count {
      client.send(Subscribe(topic: "t", grantedThrough: 0), stream: 1)
      client.send(Cancel(), stream: 1)
    }
    client.send(TopicShow(topic: "t"), stream: 2)
    let start = small.world.now
    try crawl(small, client, pause: .milliseconds(250), turns: 200) { client.types.contains(.topicInfo) }
    #expect(!client.hasEnded, "ended after \(client.types.count { $0 == .cancelled }) of \(count)")
    #expect(client.types.count { $0 == .cancelled } == count)
    #expect(small.world.now - start > .seconds(5), "the frames take longer than the keepalive deadline")

    // The work is done, and the client sends nothing.
    client.forget()
    small.settle(.seconds(3))
    #expect(client.types.last == .error)
    #expect(try client.frames.last?.decoded(Fault.self).code == .keepaliveTimeout)
    #expect(client.hasEnded)
    #expect(!observer.hasEnded)
  }

  @Test func aClientThatTakesItsAnswersSlowlyIsKeptAndOneThatTakesNoneIsNot() throws {
    var conditions = SimulatedConditions.calm
    conditions.bufferSize = 8_192
    let small = try SmallWorld(conditions: conditions) {
      $0.limits.answers = 4_096
      $0.limits.write = .seconds(5)
    }
    let client = small.connect(keepalive: 1_000)
    for number in 0..<3_000 {
      client.send(TopicCreate(topic: "t\(number)", settings: TopicSettings()), stream: UInt32(number + 1))
    }
    small.settle(.milliseconds(10))
    client.isPaused = true
    // The client reads a little every two seconds: twice its keepalive deadline, but within the write deadline.
    for _ in 0..<8 {
      small.settle(.seconds(2))
      client.isPaused = false
      small.settle(.microseconds(150))
      client.isPaused = true
      try #require(!client.hasEnded, "ended after \(client.frames.count) answers")
    }
    #expect(small.broker.metrics[.keepaliveTimeouts] == 0)

    // The client stops reading: the write deadline closes its connection, whatever it still sends.
    small.settle(.seconds(8))
    #expect(small.broker.metrics[.writeTimeouts] == 1)
    #expect(small.broker.metrics[.connections] == 0)
  }

  @Test func aClientOnASlowLineIsKeptWhileItReadsAnswersInFrontOfThePing() throws {
    var conditions = SimulatedConditions.calm
    conditions.bufferSize = 1_024
    let small = try SmallWorld(conditions: conditions)
    let client = small.connect(keepalive: 1_000)
    client.send(TopicCreate(topic: "t", settings: TopicSettings()), stream: 1)
    small.settle(.milliseconds(50))
    client.isPaused = true
    let count = 100
    for number in 0..<count { client.send(TopicShow(topic: "t"), stream: UInt32(number + 2)) }
    // The broker has answered every frame, and its PING waits behind the answers.
    small.settle(.milliseconds(50))
    for _ in 0..<10 {
      small.settle(.milliseconds(600))
      client.isPaused = false
      small.settle(.microseconds(150))
      client.isPaused = true
      try #require(!client.hasEnded, "ended after \(client.frames.count) frames")
    }
    #expect(client.types.count { $0 == .topicInfo } < count)
    #expect(!client.types.contains(.ping))
    #expect(small.broker.metrics[.keepaliveTimeouts] == 0)
  }

  @Test func withoutAWriteDeadlineTheKeepaliveEndsAClientThatTakesNoAnswers() throws {
    var conditions = SimulatedConditions.calm
    conditions.bufferSize = 8_192
    let small = try SmallWorld(conditions: conditions) {
      $0.limits.answers = 4_096
      $0.limits.write = .zero
    }
    let client = small.connect(keepalive: 1_000)
    client.isPaused = true
    for number in 0..<600 {
      client.send(TopicCreate(topic: "t\(number)", settings: TopicSettings()), stream: UInt32(number + 1))
    }
    small.settle(.seconds(5))
    #expect(small.broker.metrics[.keepaliveTimeouts] == 1)
    #expect(small.broker.metrics[.connections] == 0)
  }
}
