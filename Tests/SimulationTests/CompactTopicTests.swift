import SluiceIO
import SluiceLog
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Guarantees of compacted topics, which keep the newest record of each key, step by step.
@Suite struct CompactTopicTests {
  /// A topic that keeps three records, and a client with a publication on stream 1 and a subscription on stream 2.
  private struct Scene {
    let small: SmallWorld
    let client: ScriptedClient
    private(set) var published: UInt64 = 0
    private(set) var publishedBytes: UInt64 = 0

    init(_ flow: TopicSettings.Flow, bufferBytes: UInt64 = 4_096) throws {
      small = try SmallWorld()
      client = small.connect()
      var settings = TopicSettings(replayRecords: 3)
      settings.compact = true
      settings.flow = flow
      settings.bufferRecords = 10
      settings.bufferBytes = bufferBytes
      client.send(TopicCreate(topic: "state", settings: settings), stream: 5)
      client.send(PublishOpen(topic: "state", acknowledgement: .received), stream: 1)
      client.send(Subscribe(topic: "state", grantedThrough: Credit.unlimited), stream: 2)
      small.settle()
    }

    /// Publishes `count` records, each with a key of its own, one after the other.
    mutating func publish(_ count: Int, size: Int = 10) throws {
      for _ in 0..<count {
        let sequence = published
        published += 1
        var batch = BatchBuilder()
        let payload = [UInt8](repeating: 7, count: size)
        try Array("key \(sequence)".utf8).withUnsafeBytes { key in
          try payload.withUnsafeBytes { try batch.append(key: key, headers: [], payload: $0) }
        }
        publishedBytes += UInt64(batch.bytes.count)
        client.send(batch.publishFrame(from: sequence, stream: 1))
        small.settle(.milliseconds(10))
      }
    }

    /// The bytes that the producer may still publish.
    var room: UInt64 {
      get throws {
        let granted = try client.frames(on: 1).compactMap {
          switch $0.header.type {
          case .publishOpened: try $0.decoded(PublishOpened.self).bytesThrough
          case .demand: try $0.decoded(Demand.self).bytesThrough
          default: nil as UInt64?
          }
        }
        return (granted.last ?? 0) - publishedBytes
      }
    }

    var epoch: UInt64 {
      get throws { try #require(client.frames(on: 2).first).decoded(Subscribed.self).epoch }
    }
  }

  @Test(arguments: [TopicSettings.Flow.free, .lossless])
  func aSubscriptionThatGoesOnWithinTheGraceLagsBehindNothing(flow: TopicSettings.Flow) throws {
    var scene = try Scene(flow)
    try scene.publish(30)
    let back = scene.small.connect()
    back.send(
      Subscribe(
        topic: "state", start: .offset(5), epoch: try scene.epoch, grantedThrough: Credit.unlimited),
      stream: 1)
    scene.small.settle()
    let frames = back.frames(on: 1)
    #expect(try frames.first?.decoded(Subscribed.self).nextOffset == 5)
    #expect(!frames.map(\.header.type).contains(.lag))
    let heard = try frames.filter { $0.header.type == .deliver }.flatMap { frame in
      try frame.body.withUnsafeBytes {
        let header = try DeliverHeader.decode($0).header
        return header.firstOffset..<header.firstOffset + UInt64(header.count)
      }
    }
    #expect(heard == Array(5..<30))
  }

  /// Records kept beyond the limits for a subscription that reads the newest records count towards the buffer; those kept by the grace period don't.
  @Test func aSubscriptionThatReadsTheNewestRecordsHoldsProducersBack() throws {
    var scene = try Scene(.lossless, bufferBytes: 4_096)
    try scene.publish(20, size: 1_000)
    #expect(try scene.client.frames(on: 1).last { $0.header.type == .ack }?.decoded(Ack.self).through == 20)
    let slow = scene.small.connect()
    slow.send(Subscribe(topic: "state", grantedThrough: 0), stream: 1)
    scene.small.settle()
    let topic = try #require(scene.small.broker.core.registry.find("state"))
    for _ in 0..<40 where try scene.room > 1_100 { try scene.publish(1, size: 1_000) }
    #expect(scene.published < 40)
    #expect(try scene.room <= 1_100)
    #expect(topic.epoch.newest?.statistics().lapsedBytes ?? 0 >= 4_096)
    // The subscriber continues, and so do producers.
    slow.send(Demand(grantedThrough: Credit.unlimited), stream: 1)
    scene.small.settle()
    #expect(try scene.room > 1_100)
  }
}
