import SluiceIO
import SluiceSession
import SluiceSimulation
import SluiceWire
import Synchronization
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Broker state other than records that peers create counts towards the broker's memory. Requests are denied once such state uses half of it, and
/// removed state no longer counts.
@Suite struct KeptMemoryTests {
  private static let memory = 4 << 20

  private func world() throws -> (small: SmallWorld, kept: KeptMemory) {
    let small = try SmallWorld {
      $0.limits.memory = Self.memory
      $0.limits.memoryPerAddress = Self.memory
    }
    return (small, small.broker.core.memory.kept)
  }

  /// Sends frames on stream 1, each followed by CANCEL, until one is denied.
  private func fill(_ small: SmallWorld, _ client: ScriptedClient, _ frame: (Int) -> some Frame) throws -> (
    count: Int, refusal: Fault?
  ) {
    for round in 0..<100 {
      client.forget()
      for number in 0..<500 {
        client.send(frame(round * 500 + number), stream: 1)
        client.send(Cancel(), stream: 1)
      }
      _ = small.world.run(limit: .seconds(30)) { client.types.count { $0 == .cancelled } == 500 }
      let refusals = try client.frames.filter { $0.header.type == .error }.map { try $0.decoded(Fault.self) }
      if let refusal = refusals.first { return ((round + 1) * 500 - refusals.count, refusal) }
    }
    return (50_000, nil)
  }

  private func expectRefusal(_ fault: Fault?, _ small: SmallWorld) {
    #expect(fault?.code == .limitReached)
    #expect(fault?.message.contains("--memory") == true && fault?.message.contains("delete") == true)
    #expect(small.broker.metrics[.refusedKept] > 0)
    #expect(small.broker.metrics[.keptBytes] == small.broker.core.memory.kept.used)
  }

  @Test func groupsWithoutMembersAreRefusedBeyondTheShareOfMemory() throws {
    let (small, kept) = try world()
    let client = small.connect()
    for topic in 0..<4 {
      _ = client.ask(TopicCreate(topic: "t\(topic)", settings: TopicSettings()), stream: 9, in: small)
    }
    let before = kept.used
    let (count, refusal) = try fill(small, client) { number in
      JoinGroup(topic: "t\(number % 4)", group: "g\(number)", grantedThrough: 0)
    }
    expectRefusal(refusal, small)
    #expect(count > 300 && count < Self.memory / 2 / KeptMemory.group)
    #expect(kept.used < Self.memory / 2 + 16_384)
    #expect(small.broker.core.memory.used >= kept.used)

    // Existing groups still work, and a deletion frees memory for others.
    let again = JoinGroup(topic: "t0", group: "g0", grantedThrough: 0)
    small.broker.core.memory.kept.add(-65_536)
    #expect(client.ask(again, stream: 2, in: small).first?.header.type == .subscribed)
    client.send(Cancel(), stream: 2)
    small.broker.core.memory.kept.add(65_536)
    for number in 0..<count {
      client.send(CursorDelete(topic: "t\(number % 4)", name: "g\(number)"), stream: 3)
    }
    _ = small.world.run(limit: .seconds(30)) { client.frames(on: 3).count == count }
    small.settle()
    // The client's table of streams is smaller now than just after its first reply.
    #expect(kept.used <= before)
    #expect(client.ask(again, stream: 2, in: small).first?.header.type == .subscribed)
  }

  @Test func cursorsAreRefusedBeyondTheShareOfMemory() throws {
    let (small, kept) = try world()
    let client = small.connect()
    _ = client.ask(TopicCreate(topic: "t", settings: TopicSettings()), stream: 9, in: small)
    let before = kept.used
    let (count, refusal) = try fill(small, client) { number in
      Subscribe(topic: "t", grantedThrough: 0, cursor: "c\(number)" + String(repeating: "x", count: 200))
    }
    expectRefusal(refusal, small)
    #expect(count > 500 && kept.used < Self.memory / 2 + 16_384)
    _ = client.ask(TopicDelete(topic: "t"), stream: 9, in: small)
    #expect(kept.used < before)
  }

  @Test func producersTakeEachOthersPlaceBeyondTheShareOfMemory() throws {
    let small = try SmallWorld {
      $0.limits.memory = 1 << 20
      $0.limits.producers = 1_000_000
    }
    let kept = small.broker.core.memory.kept
    let client = small.connect()
    let (_, refusal) = try fill(small, client) { number in
      PublishOpen(
        topic: "t", acknowledgement: .received, producer: UInt64(number + 1), firstSequence: 0)
    }
    #expect(refusal?.code == .limitReached || refusal == nil)
    #expect(kept.used < (1 << 19) + 16_384)
    _ = client.ask(TopicDelete(topic: "t"), stream: 9, in: small)
    client.close()
    small.settle()
    #expect(kept.used == 0)
  }

  @Test func topicsAndSubscriptionsAreRefusedBeyondTheShareOfMemory() throws {
    let (small, kept) = try world()
    let client = small.connect()
    let (count, refusal) = try fill(small, client) { number in
      PublishOpen(topic: "t\(number)", acknowledgement: .none)
    }
    expectRefusal(refusal, small)
    #expect(count > 500 && small.broker.core.registry.count == count)
    // Objects smaller than a topic are denied, too.
    kept.add(KeptMemory.topic)
    _ = client.ask(Subscribe(topic: "t0", grantedThrough: 1), stream: 7, in: small)
    expectRefusal(try client.fault(on: 7), small)
    _ = client.ask(SubscribePattern(pattern: ">", grantedThrough: 1), stream: 8, in: small)
    expectRefusal(try client.fault(on: 8), small)
    kept.add(-KeptMemory.topic)
    for number in 0..<count { client.send(TopicDelete(topic: "t\(number)"), stream: 9) }
    _ = small.world.run(limit: .seconds(30)) { small.broker.core.registry.count == 0 }
    client.close()
    small.settle(.seconds(3))
    #expect(kept.used == 0)
  }

  @Test func patternsAndStreamsCountNoMoreWhenTheyAreGone() throws {
    let (small, kept) = try world()
    let client = small.connect()
    let connection = kept.used
    for number in 0..<200 { _ = try small.broker.core.registry.use("t\(number)") }
    let topics = kept.used
    #expect(topics - connection >= 200 * KeptMemory.topic)
    _ = client.ask(SubscribePattern(pattern: "*", grantedThrough: 0), stream: 5_000, in: small)
    #expect(kept.used - topics >= 200 * KeptMemory.match + 5_000 * ServerSession.bytesPerStream)
    client.send(Cancel(), stream: 5_000)
    small.settle()
    #expect(kept.used - topics < 200 * KeptMemory.match + 500_000)
    client.close()
    small.settle()
    #expect(kept.used == topics - connection)
  }

  @Test func aGroupHasFewRecordsUnderWayWhenThereIsNoMemoryForMore() throws {
    let (small, kept) = try world()
    let (member, producer) = (small.connect(), small.connect())
    let settings = JoinGroup.Settings(acknowledgement: .explicit)
    member.send(JoinGroup(topic: "t", group: "g", settings: settings, grantedThrough: .max), stream: 1)
    producer.send(PublishOpen(topic: "t", acknowledgement: .none), stream: 1)
    small.settle()
    let group = try #require(small.broker.core.registry.find("t")?.state.withLock { $0.groups["g"] })
    let before = kept.used
    for batch in 0..<20 {
      producer.publish([[UInt8]](repeating: [1], count: 100), from: UInt64(batch * 100), stream: 1)
      small.settle(.milliseconds(10))
    }
    #expect(group.core.withLock { $0.state.outstanding } == 2_000)
    #expect(kept.used - before >= 2_000 * KeptMemory.groupRecord - 1_024)

    // Other state uses the remaining memory.
    kept.add(Self.memory)
    member.send(Settle(.acknowledge, delivery: 1, firstOffset: 0, count: 2_000), stream: 1)
    producer.publish([[UInt8]](repeating: [1], count: 100), from: 2_000, stream: 1)
    small.settle()
    #expect(group.core.withLock { $0.state.outstanding } == KeptMemory.leastGroupRecords)
    member.send(Settle(.acknowledge, delivery: 1, firstOffset: 2_000, count: 16), stream: 1)
    small.settle()
    #expect(group.core.withLock { $0.state.floor } == 2_016)
    kept.add(-Self.memory)
    member.send(Settle(.acknowledge, delivery: 1, firstOffset: 2_016, count: 1), stream: 1)
    small.settle()
    #expect(group.core.withLock { $0.state.outstanding } == 83)
  }
}
