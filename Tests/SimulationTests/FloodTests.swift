import SluiceIO
import SluiceSimulation
import SluiceStore
import SluiceWire
import Synchronization
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// A client that sends more work than the broker can do at once delays only itself.
@Suite struct FloodTests {
  /// Sends a PING behind another client's flood of frames. Returns how many frames of the flood were answered before the PING.
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
    #expect(before < 5 * WorkBudget.limit, "\(before) of \(after.count) frames came before the PONG")
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

  @Test func settlingWithAStaleDeliveryIsPaidByTheClientThatDoesIt() throws {
    let small = try SmallWorld()
    let (member, producer, other) = (small.connect(), small.connect(), small.connect())
    let settings = JoinGroup.Settings(acknowledgement: .explicit)
    member.send(JoinGroup(topic: "t", group: "g", settings: settings, grantedThrough: .max), stream: 1)
    producer.send(PublishOpen(topic: "t", acknowledgement: .none), stream: 1)
    small.settle()
    for batch in 0..<40 {
      producer.publish([[UInt8]](repeating: [1], count: 100), from: UInt64(batch * 100), stream: 1)
      small.settle(.milliseconds(10))
    }
    let group = try #require(small.broker.core.registry.find("t")?.state.withLock { $0.groups["g"] })
    #expect(group.core.withLock { $0.state.outstanding } == 4_000)

    // 500 frames that each scan 4,000 records: 2,000,000 in all. A turn scans only a limited number.
    member.forget()
    for _ in 0..<500 {
      member.send(Settle(.acknowledge, delivery: 9, firstOffset: 0, count: .max), stream: 1)
    }
    member.send(Ping(token: 1), stream: 0)
    other.forget()
    other.send(Ping(token: 7), stream: 0)
    let start = small.world.loops[0].turns
    _ = small.world.run(limit: .seconds(60)) { other.types.contains(.pong) }
    #expect(!member.types.contains(.pong))
    _ = small.world.run(limit: .seconds(60)) { member.types.contains(.pong) }
    #expect(member.types == [.pong])
    // Not counting the turns in which the frames arrive.
    #expect(small.world.loops[0].turns - start > 500 * 4_000 / UInt64(WorkBudget.limit * 8))
    #expect(group.core.withLock { $0.state.outstanding } == 4_000)
  }

  @Test func topicsOfAPatternAreJoinedAndLeftAShareATurn() throws {
    let small = try SmallWorld()
    let client = small.connect()
    let count = 3_000
    for number in 0..<count { _ = try small.broker.core.registry.use("t.\(number)") }
    let topics = small.broker.core.registry.all
    /// The largest number of topics whose subscriber count changes in one step of the world.
    func largestShare(until isDone: (Int) -> Bool) -> Int {
      var (largest, last) = (0, topics.count { $0.attached.subscriptions > 0 })
      _ = small.world.run(limit: .seconds(60)) {
        let now = topics.count { $0.attached.subscriptions > 0 }
        largest = max(largest, abs(now - last))
        last = now
        return isDone(now)
      }
      return largest
    }
    client.forget()
    client.send(SubscribePattern(pattern: "t.*", grantedThrough: 0), stream: 1)
    client.send(Ping(token: 1), stream: 0)
    // One share when the frame is read, and one at the end of that turn.
    #expect((1...2 * WorkBudget.limit).contains(largestShare { $0 == count }))
    small.settle()
    let (answer, pong) = (client.types.firstIndex(of: .subscribed), client.types.firstIndex(of: .pong))
    #expect(try #require(answer) < #require(pong), "the client's next frame comes behind its own work")
    client.send(Cancel(), stream: 1)
    #expect((1...WorkBudget.limit).contains(largestShare { $0 == 0 }))
    small.settle()
    #expect(client.types.last == .cancelled)
  }

  private func positions(_ count: Int, offset: UInt64 = 3) -> [TopicPosition] {
    (0..<count).map { TopicPosition(topic: "t.\($0)", epoch: 1, nextOffset: offset) }
  }

  @Test(arguments: [true, false])
  func positionsOfALongFrameAreTakenAShareATurn(inFirstFrame: Bool) throws {
    let small = try SmallWorld()
    let flooder = small.connect()
    let count = 20_000
    flooder.forget()
    let all = positions(count)
    flooder.send(
      SubscribePattern(
        pattern: "t.*", grantedThrough: 0, positions: inFirstFrame ? all : [], more: !inFirstFrame),
      stream: 1)
    if !inFirstFrame { flooder.send(Positions(all, more: false), stream: 1) }
    flooder.send(Ping(token: 1), stream: 0)
    let start = small.world.loops[0].turns
    _ = small.world.run(limit: .seconds(60)) { flooder.types.contains(.pong) }
    #expect(flooder.types.first == .subscribed)
    // The positions are read and entered in a table.
    let perTurn = UInt64(WorkBudget.limit * FrameCost.Work.positions.perStep)
    #expect(small.world.loops[0].turns - start >= 2 * UInt64(count) / perTurn)
  }

  @Test func aLongFrameResumesEachTopicAtItsPosition() throws {
    let small = try SmallWorld()
    let client = small.connect()
    let (count, last) = (4_000, 2_999)
    client.send(PublishOpen(topic: "t.\(last)", acknowledgement: .none), stream: 1)
    small.settle()
    client.publish([[1], [2], [3], [4], [5]], from: 0, stream: 1)
    small.settle()
    let epoch = try #require(small.broker.core.registry.find("t.\(last)")).epoch.number
    var all = positions(count)
    all[last].epoch = epoch
    client.forget()
    client.send(SubscribePattern(pattern: "t.*", grantedThrough: .max, positions: all), stream: 2)
    small.settle(.seconds(2))
    let matched = try #require(client.frames.first { $0.header.type == .matched }).decoded(Matched.self)
    #expect(matched.topic == "t.\(last)" && matched.place.nextOffset == 3)
  }

  @Test func aLongFrameThatIsMalformedAtItsEndEndsTheConnection() throws {
    let small = try SmallWorld()
    let client = small.connect()
    client.send(SubscribePattern(pattern: "t.*", grantedThrough: 0, more: true), stream: 1)
    var bytes = Positions(positions(10_000), more: false).encoded(stream: 1)
    // The length of the last name.
    bytes[bytes.count - 16 - 6 - 2] = 0xFF
    client.send(bytes)
    small.settle(.seconds(5))
    #expect(client.hasEnded)
    #expect(try client.fault(on: 0)?.code == .malformedFrame)
    client.close()
    small.settle()
    #expect(small.broker.core.memory.kept.used == 0)
  }

  @Test func statesAreRestoredAShareATurn() throws {
    let small = try SmallWorld(storage: StoreConfiguration(MemoryStore())) { $0.limits.producers = 100_000 }
    let flooder = small.connect()
    var durable = TopicSettings()
    durable.storage = .durable
    _ = flooder.ask(TopicCreate(topic: "d", settings: durable), stream: 1, in: small)
    let count = 20_000
    let states = (1...count).map {
      StateEntry(key: StoredValue.key(UInt64($0)), value: StoredProducer(next: 5).encoded())
    }
    flooder.send(StateRestore(topic: "d", kind: .producer, origin: 0, states: states), stream: 2)
    let topic = try #require(small.broker.core.registry.find("d"))
    var (largest, last) = (0, 0)
    _ = small.world.run(limit: .seconds(60)) {
      let known = topic.knownProducerCount
      (largest, last) = (max(largest, known - last), known)
      return !flooder.frames(on: 2).isEmpty
    }
    // One share when the frame is read, and one at the end of that turn.
    #expect((1...2 * 1_024).contains(largest))
    #expect(flooder.frames(on: 2).map(\.header.type) == [.done])
    #expect(topic.knownProducerCount == count)
  }
}
