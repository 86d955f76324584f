import SluiceIO
import SluiceSession
import SluiceSimulation
import SluiceStore
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Subscriptions to patterns with topics on several nodes.
@Suite struct RelayPatternTests {
  /// The frames received on a pattern's stream: each topic's offsets, and its matches and removals.
  private struct Heard {
    var offsets: [String: [UInt64]] = [:]
    var gone: [String] = []
    var matches: [String: [Subscribed]] = [:]
    var isLive = false
    var records = 0

    init(_ client: ScriptedClient, on stream: UInt32 = 1) throws {
      var names: [UInt32: String] = [:]
      var subject: UInt32 = 0
      for frame in client.frames(on: stream) {
        switch frame.header.type {
        case .matched:
          let matched = try frame.decoded(Matched.self)
          #expect(names[matched.number] == nil)
          names[matched.number] = matched.topic
          matches[matched.topic, default: []].append(matched.place)
        case .unmatched: gone.append(try #require(names[try frame.decoded(Unmatched.self).number]))
        case .selectTopic: subject = try frame.decoded(SelectTopic.self).number
        case .deliver:
          let name = try #require(names[subject])
          offsets[name, default: []] += frame.delivered.map(\.offset)
          records += frame.delivered.count
        case .live: if subject == 0 { isLive = true }
        default: break
        }
      }
    }
  }

  /// Topics of the first, the second and the third node in turn.
  private let names: [String] = {
    var names: [[String]] = [[], [], []]
    for number in 0..<100 {
      let name = "t.\(number)"
      names[ShardHash.shard(of: name, of: RelayWorld.shards) % 3].append(name)
    }
    return (0..<8).map { names[$0 % 3][$0 / 3] }
  }()

  /// Three nodes, with topics at each of them.
  private func world(seed: UInt64 = 1, conditions: SimulatedConditions = .calm) throws -> RelayWorld {
    let relay = try RelayWorld(nodes: 3, seed: seed, conditions: conditions)
    for shard in 0..<RelayWorld.shards {
      let shard = ShardID(rawValue: UInt32(shard))
      relay.move(shard, to: Int(shard.rawValue) % 3)
      if shard.rawValue % 3 > 0 { _ = relay.nodes[0].broker.core.registry.beginLeaving(shard) }
    }
    relay.settle()
    return relay
  }

  private func open(_ topics: [String], _ producer: ScriptedClient) {
    for (index, name) in topics.enumerated() {
      producer.send(PublishOpen(topic: name, acknowledgement: .received), stream: UInt32(index + 1))
    }
  }

  private func all(_ count: Int) -> [UInt64] { (0..<count).map(UInt64.init) }

  @Test func topicsOfAllNodesAndTopicsMadeLater() throws {
    let relay = try world()
    let (producer, subscriber) = (relay.connect(to: 1), relay.connect(to: 0))
    open(Array(names.prefix(4)), producer)
    relay.settle()
    for stream in 1...4 { producer.publish(5, from: 0, stream: UInt32(stream)) }
    relay.settle()
    subscriber.send(
      SubscribePattern(pattern: "t.*", start: .earliest, grantedThrough: Credit.unlimited), stream: 1)
    relay.settle()
    open(names, relay.connect(to: 2))
    for stream in 1...4 { producer.publish(5, from: 5, stream: UInt32(stream)) }
    relay.settle()
    let late = relay.connect(to: 2)
    for (index, name) in names.enumerated() where index >= 4 {
      late.send(PublishOpen(topic: name, acknowledgement: .received), stream: UInt32(index))
      relay.settle()
      late.publish(3, from: 0, stream: UInt32(index))
    }
    relay.settle()
    let heard = try Heard(subscriber)
    for name in names.prefix(4) { #expect(heard.offsets[name] == all(10)) }
    for name in names.dropFirst(4) { #expect(heard.offsets[name] == all(3)) }
    #expect(heard.isLive && heard.gone == [])
    #expect(subscriber.types(on: 1).first == .subscribed)
  }

  @Test(arguments: UInt64(1)...30)
  func neverMoreThanWasAskedFor(seed: UInt64) throws {
    let relay = try world(seed: seed, conditions: SimulatedConditions())
    let (producer, subscriber) = (relay.connect(to: 1), relay.connect(to: 0))
    open(names, producer)
    relay.settle()
    subscriber.send(SubscribePattern(pattern: "t.>", start: .earliest, grantedThrough: 0), stream: 1)
    relay.settle()
    var published = [Int](repeating: 0, count: names.count)
    var granted: UInt64 = 0
    for _ in 0..<30 {
      let index = relay.world.random.next(in: 0...(names.count - 1))
      let count = relay.world.random.next(in: 1...20)
      producer.publish(count, from: published[index], stream: UInt32(index + 1))
      published[index] += count
      let more = relay.world.random.next(in: 0...15)
      granted += UInt64(more)
      if more > 0 { subscriber.send(Demand(grantedThrough: granted), stream: 1) }
      relay.settle(.milliseconds(Int64(relay.world.random.next(in: 0...20))))
      #expect(UInt64(try Heard(subscriber).records) <= granted)
    }
    relay.settle(.seconds(2))
    let heard = try Heard(subscriber)
    #expect(heard.records == min(Int(granted), published.reduce(0, +)))
    for (name, offsets) in heard.offsets { #expect(offsets == all(offsets.count), "\(name)") }
  }

  @Test func oneRecordAtATimeComesFromEachNodeThatHasSome() throws {
    let relay = try world()
    let (producer, subscriber) = (relay.connect(to: 1), relay.connect(to: 0))
    open(names, producer)
    relay.settle()
    for stream in 1...3 { producer.publish(10, from: 0, stream: UInt32(stream)) }
    subscriber.send(SubscribePattern(pattern: "t.>", start: .earliest, grantedThrough: 0), stream: 1)
    relay.settle()
    for granted in UInt64(1)...30 {
      subscriber.send(Demand(grantedThrough: granted), stream: 1)
      relay.settle(.milliseconds(20))
      #expect(try Heard(subscriber).records == Int(granted))
    }
    let heard = try Heard(subscriber)
    for name in names.prefix(3) { #expect(heard.offsets[name] == all(10)) }
  }

  @Test func positionsOfTopicsAtAllNodes() throws {
    let relay = try world()
    let (producer, subscriber) = (relay.connect(to: 1), relay.connect(to: 0))
    open(names, producer)
    relay.settle()
    for stream in 1...8 { producer.publish(10, from: 0, stream: UInt32(stream)) }
    relay.settle()
    subscriber.send(SubscribePattern(pattern: "t.*", start: .earliest, grantedThrough: 1), stream: 1)
    relay.settle()
    let places = try Heard(subscriber).matches.mapValues { $0[0] }
    var positions = names.map { TopicPosition(topic: $0, epoch: places[$0]?.epoch ?? 0, nextOffset: 7) }
    positions.append(TopicPosition(topic: "t.gone", epoch: 3, nextOffset: 2))
    let again = relay.connect(to: 2)
    again.send(
      SubscribePattern(
        pattern: "t.*", start: .offset(0), grantedThrough: Credit.unlimited, positions: positions), stream: 1)
    relay.settle()
    let heard = try Heard(again)
    for name in names { #expect(heard.offsets[name] == [7, 8, 9]) }
    #expect(heard.gone == [] && heard.matches["t.gone"] == nil)
  }

  @Test func topicsThatAreDeleted() throws {
    let relay = try world()
    let (producer, subscriber) = (relay.connect(to: 1), relay.connect(to: 0))
    open(names, producer)
    relay.settle()
    subscriber.send(SubscribePattern(pattern: "t.*", start: .earliest, grantedThrough: 9), stream: 1)
    relay.settle()
    for (index, name) in names.enumerated() {
      producer.send(TopicDelete(topic: name), stream: UInt32(20 + index))
    }
    relay.settle()
    #expect(try Set(Heard(subscriber).gone) == Set(names))
    open([names[1]], relay.connect(to: 2))
    relay.settle()
    #expect(try Heard(subscriber).matches[names[1]]?.count == 2)
  }

  @Test func aBrokenLinkPausesItsTopicsOnly() throws {
    let relay = try world()
    let (producer, subscriber) = (relay.connect(to: 0), relay.connect(to: 0))
    let other = relay.connect(to: 1)
    open([names[0]], producer)
    open([names[1]], other)
    relay.settle()
    subscriber.send(
      SubscribePattern(pattern: "t.*", start: .earliest, grantedThrough: Credit.unlimited), stream: 1)
    relay.settle()
    producer.publish(3, from: 0, stream: 1)
    other.publish(3, from: 0, stream: 1)
    relay.settle()
    relay.world.network.cut(.host("node1", port: 7420))
    producer.publish(3, from: 3, stream: 1)
    relay.settle(.seconds(1))
    #expect(try Heard(subscriber).offsets[names[0]] == all(6))
    relay.world.network.heal(.host("node1", port: 7420))
    let third = relay.connect(to: 1)
    open([names[1]], third)
    relay.settle()
    third.publish(2, from: 0, stream: 1)
    relay.settle(.seconds(4))
    #expect(try Heard(subscriber).offsets[names[1]] == all(5))
    #expect(subscriber.refusal(on: 1) == nil)
  }

  @Test func cancelledPatternsLeaveNothingAtOtherNodes() throws {
    let relay = try world()
    let subscriber = relay.connect(to: 0)
    open(names, relay.connect(to: 1))
    relay.settle()
    subscriber.send(SubscribePattern(pattern: "t.*", start: .earliest, grantedThrough: 5), stream: 1)
    relay.settle()
    #expect(relay.nodes.allSatisfy { $0.broker.core.registry.watches == 1 })
    subscriber.send(Cancel(), stream: 1)
    relay.settle()
    #expect(subscriber.types(on: 1).last == .cancelled)
    #expect(relay.nodes.allSatisfy { $0.broker.core.registry.watches == 0 })
  }

  @Test func producersThatFollowTheirSubscribersFollowAPatternOfAnotherNode() throws {
    let relay = try world()
    let (producer, subscriber) = (relay.connect(to: 1), relay.connect(to: 0))
    var settings = TopicSettings()
    settings.flow = .lossless
    settings.bufferRecords = 0
    producer.send(PublishOpen(topic: names[1], acknowledgement: .received, settings: settings), stream: 1)
    relay.settle()
    subscriber.send(SubscribePattern(pattern: "t.*", start: .earliest, grantedThrough: 0), stream: 1)
    relay.settle()
    func granted() throws -> UInt64 {
      let opened = try producer.frames(on: 1).first?.decoded(PublishOpened.self).grantedThrough ?? 0
      let demand = try producer.frames(on: 1).last { $0.header.type == .demand }?.decoded(Demand.self)
      return max(opened, demand?.grantedThrough ?? 0)
    }
    #expect(try granted() == 0)
    subscriber.send(Demand(grantedThrough: 4), stream: 1)
    relay.settle()
    #expect(try granted() == 4)
    producer.publish(4, from: 0, stream: 1)
    relay.settle()
    #expect(try Heard(subscriber).offsets[names[1]] == all(4))
    #expect(try granted() == 4)
  }

  @Test func clientsThatAreNoNodesMayNotLend() throws {
    let relay = try world()
    let client = relay.connect(to: 0)
    client.send(SubscribePattern(pattern: "t.*", grantedThrough: 5), stream: 1)
    relay.settle()
    client.send(Lend(grantedThrough: 5, pacedThrough: 5), stream: 1)
    relay.settle()
    #expect(client.refusal(on: 1) == .unsupported)
  }
}
