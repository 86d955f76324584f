import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Behaviour that depends on elapsed time, in a world that controls exactly how much time passes.
@Suite struct DeadlineTests {
  @Test func whoAnswersIsKeptAndWhoFallsSilentIsGivenUp() throws {
    let small = try SmallWorld()
    let observer = small.connect()
    let client = small.connect(keepalive: 1_000)
    client.send(Subscribe(topic: "t", grantedThrough: .max), stream: 1)
    client.send(PublishOpen(topic: "t", acknowledgement: .none), stream: 2)
    for _ in 0..<100 {
      client.forget()
      small.settle()
      for frame in client.frames where frame.header.type == .ping {
        client.send(Pong(token: try frame.decoded(Ping.self).token), stream: 0)
      }
    }
    #expect(!client.hasEnded)
    #expect(try show("t", observer, small).subscriptions == 1)

    // Only its replies kept the connection open. Without them the broker sends one more PING, then closes the connection with an error that says why.
    client.forget()
    small.settle(.seconds(2))
    #expect(client.types == [.ping, .error])
    #expect(try client.frames[1].decoded(Fault.self).code == .keepaliveTimeout)
    #expect(client.hasEnded)
    #expect(try show("t", observer, small).subscriptions == 0)
    #expect(try show("t", observer, small).publications == 0)
  }

  /// The broker checks idle connections once a second; a shorter deadline makes it check earlier from the start.
  @Test func aClientWithAShortDeadlineIsAskedBeforeItIsGivenUp() throws {
    let small = try SmallWorld()
    let client = small.connect(keepalive: 300)
    for _ in 0..<40 {
      client.forget()
      small.settle(.milliseconds(50))
      for frame in client.frames where frame.header.type == .ping {
        client.send(Pong(token: try frame.decoded(Ping.self).token), stream: 0)
      }
      try #require(!client.hasEnded, "given up at \(small.world.now)")
    }
  }

  @Test func whoReadsSlowlyIsKept() throws {
    let small = try SmallWorld()
    let slow = small.connect(keepalive: 700)
    slow.send(Subscribe(topic: "t", grantedThrough: .max), stream: 1)
    small.settle()
    slow.isPaused = true
    let producer = small.connect()
    producer.send(PublishOpen(topic: "t", acknowledgement: .none), stream: 1)
    let payloads = [[UInt8]](repeating: [UInt8](repeating: 1, count: 16_384), count: 4)
    for batch in 0..<64 { producer.publish(payloads, from: UInt64(batch * 4), stream: 1) }

    // A PING would queue behind a megabyte of records and arrive long after the deadline. Progress in reading those records keeps the connection
    // open.
    var records = 0
    for _ in 0..<100 where records < 256 {
      slow.isPaused = false
      small.settle(.microseconds(150))
      slow.isPaused = true
      small.settle()
      records = try slow.frames(on: 1).reduce(0) { sum, frame in
        guard frame.header.type == .deliver else { return sum }
        return sum + Int(try frame.body.withUnsafeBytes { try DeliverHeader.decode($0).header.count })
      }
      try #require(!slow.hasEnded, "given up after \(records) records")
    }
    #expect(records == 256)
    #expect(small.world.now.nanoseconds > 4_000_000_000, "that wasn't slow")
  }

  @Test func recordsThatAreTooOldAreNotReplayed() throws {
    let small = try SmallWorld { $0.topicDefaults.replayAge = 1_000 }
    let client = small.connect()
    client.send(PublishOpen(topic: "t", acknowledgement: .none), stream: 1)
    client.publish([[1], [2]], from: 0, stream: 1)
    small.settle(.milliseconds(1_500))
    client.publish([[3]], from: 2, stream: 1)
    small.settle(.milliseconds(500))
    client.send(Subscribe(topic: "t", grantedThrough: .max), stream: 2)
    small.settle()
    let frames = client.frames(on: 2)
    #expect(frames.map(\.header.type) == [.subscribed, .deliver, .live])
    let subscribed = try frames[0].decoded(Subscribed.self)
    #expect(subscribed.nextOffset == 2)
    #expect(subscribed.liveOffset == 3)
  }

  @Test func nothingNewIsOpenedAndNothingMoreIsPublishedWhileTheBrokerStops() throws {
    let small = try SmallWorld { $0.drainTime = .seconds(60) }
    let client = small.connect()
    client.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
    client.publish([[1], [2]], from: 0, stream: 1)
    // The broker's shutdown waits for this subscription, which could still request records, and soon does.
    client.send(Subscribe(topic: "t", grantedThrough: 1), stream: 2)
    small.settle()
    client.forget()
    small.broker.shutdown()
    small.settle()
    #expect(client.types == [.goAway])

    client.publish([[3]], from: 2, stream: 1)
    client.send(Subscribe(topic: "t", grantedThrough: 1), stream: 3)
    client.send(Cancel(), stream: 3)
    client.send(PublishOpen(topic: "t", acknowledgement: .none), stream: 4)
    small.settle()
    #expect(!client.hasEnded)
    for stream in [3, 4] as [UInt32] {
      #expect(try client.frames(on: stream).first?.decoded(Fault.self).code == .shuttingDown)
    }
    #expect(client.frames(on: 3).map(\.header.type) == [.error, .cancelled])
    #expect(client.frames(on: 1).isEmpty)

    client.forget()
    client.send(Demand(grantedThrough: 3), stream: 2)
    small.settle()
    #expect(client.frames(on: 2).map(\.header.type) == [.deliver, .live])
    #expect(try client.frames[0].body.withUnsafeBytes { try DeliverHeader.decode($0).header.count } == 1)
    #expect(client.hasEnded)
  }

  /// Requests the broker's summary of a topic, and lets enough time pass for the reply.
  private func show(_ topic: String, _ client: ScriptedClient, _ small: SmallWorld) throws -> TopicSummary {
    client.forget()
    client.send(TopicShow(topic: topic), stream: 100)
    small.settle()
    return try #require(client.frames(on: 100).first).decoded(TopicInfo.self).summary
  }
}
