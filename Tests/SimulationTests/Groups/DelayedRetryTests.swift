import SluiceIO
import SluiceSimulation
import SluiceStore
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Retries with a delay: what members, other clients and the store see of them.
@Suite struct DelayedRetryTests {
  /// The initial time of each world's wall clock.
  private static let start: Int64 = 1_750_000_000_000

  private static func join(
    _ client: ScriptedClient, _ small: SmallWorld, _ backoff: JoinGroup.Backoff = .none, granted: UInt64 = 100
  ) {
    client.send(
      JoinGroup(
        topic: "t", group: "g", start: .earliest,
        settings: JoinGroup.Settings(acknowledgement: .explicit, retryBackoff: backoff),
        grantedThrough: granted), stream: 1)
    small.settle()
  }

  private static func publish(_ count: Int, _ small: SmallWorld) {
    let producer = small.connect()
    producer.send(PublishOpen(topic: "t", acknowledgement: .none), stream: 1)
    small.settle()
    producer.publish(Array(repeating: [1], count: count), from: 0, stream: 1)
    small.settle()
  }

  /// The offsets that a client got.
  private static func offsets(_ client: ScriptedClient) throws -> [UInt64] {
    try client.frames.filter { $0.header.type == .deliver }.map { frame in
      try frame.body.withUnsafeBytes { try DeliverHeader.decode($0).0.firstOffset }
    }
  }

  private static func retry(_ offset: UInt64, delivery: UInt32 = 1, after delay: UInt32 = Settle.byBackoff)
    -> Settle
  {
    Settle(.retry, delivery: delivery, firstOffset: offset, count: 1, delay: delay)
  }

  @Test func aWaitingRecordUsesNoDemand() throws {
    let small = try SmallWorld()
    Self.publish(3, small)
    let member = small.connect(keepalive: 300_000)
    Self.join(member, small, granted: 1)
    member.send(Self.retry(0, after: 10_000), stream: 1)
    member.send(Demand(grantedThrough: 2), stream: 1)
    small.settle(.seconds(1))
    #expect(try Self.offsets(member) == [0, 1])
    member.send(Demand(grantedThrough: 4), stream: 1)
    small.settle(.seconds(8))
    #expect(try Self.offsets(member) == [0, 1, 2])
    small.settle(.seconds(2))
    #expect(try Self.offsets(member) == [0, 1, 2, 0])
  }

  /// A delay that ends earlier than the one for which the broker waits already.
  @Test func eachRecordComesAtItsOwnTime() throws {
    let small = try SmallWorld()
    Self.publish(4, small)
    let member = small.connect(keepalive: 300_000)
    Self.join(member, small, JoinGroup.Backoff(first: 3_000, longest: 5_000))
    for (offset, delay) in [(0, 20_000), (1, 9_000), (2, 1_000), (3, Settle.byBackoff)] as [(UInt64, UInt32)]
    {
      member.send(Self.retry(offset, after: delay), stream: 1)
    }
    member.forget()
    small.settle(.milliseconds(900))
    #expect(try Self.offsets(member) == [])
    for (time, offsets) in [(200, [2]), (1_700, []), (400, [3]), (5_700, []), (300, [1]), (11_000, [0])]
      as [(Int, [UInt64])]
    {
      member.forget()
      small.settle(.milliseconds(time))
      #expect(try Self.offsets(member) == offsets)
    }
  }

  @Test func theNumberAndTheNextTimeAreShown() throws {
    let small = try SmallWorld()
    Self.publish(3, small)
    let member = small.connect(keepalive: 300_000)
    Self.join(member, small)
    member.send(Self.retry(0, after: 20_000), stream: 1)
    member.send(Self.retry(1, after: 5_000), stream: 1)
    small.settle(.seconds(1))
    let list = try #require(member.ask(CursorList(topic: "t", limit: 9), stream: 3, in: small).last)
    let group = try #require(try list.decoded(Cursors.self).cursors.first)
    #expect(group.delayed == 2 && group.outstanding == 1 && group.redeliveries == 0)
    #expect((3_500...4_500).contains(group.nextRetry))
    let shown = try #require(member.ask(TopicShow(topic: "t"), stream: 5, in: small).last)
    let consumer = try #require(try shown.decoded(TopicInfo.self).consumers.first)
    #expect(consumer.delayed == 2 && consumer.unacknowledged == 1)
    #expect((3_000...4_500).contains(consumer.nextRetry))
    small.settle(.seconds(20))
    let later = try #require(member.ask(CursorList(topic: "t", limit: 9), stream: 7, in: small).last)
    let end = try #require(try later.decoded(Cursors.self).cursors.first)
    #expect(end.delayed == 0 && end.nextRetry == 0 && end.outstanding == 3 && end.redeliveries == 2)
  }

  @Test(arguments: [false, true]) func aDelayOutlivesTheBroker(crashes: Bool) throws {
    let disk = DurableDisk(seed: 1)
    let opened = disk.open()
    func world(_ storage: OpenedDisk) throws -> SmallWorld {
      try SmallWorld(storage: StoreConfiguration(storage)) {
        $0.topicDefaults.storage = .durable
        $0.topicDefaults.sync = .always
      }
    }
    let former = try world(opened)
    Self.publish(1, former)
    let member = former.connect(keepalive: 300_000)
    Self.join(member, former)
    former.settle(.seconds(1))
    #expect(try Self.offsets(member) == [0])
    former.world.wallClock = Self.start - 40_000
    member.send(Self.retry(0, after: 60_000), stream: 1)
    former.settle(.seconds(3))
    if crashes {
      opened.die()
    } else {
      former.broker.stop()
      former.settle(.seconds(3))
    }

    let next = try world(disk.open())
    let other = next.connect(keepalive: 300_000)
    Self.join(other, next)
    next.settle(.seconds(18))
    #expect(try Self.offsets(other) == [])
    next.settle(.seconds(3))
    #expect(try Self.offsets(other) == [0])
    let count = try #require(other.frames.first { $0.header.type == .deliveries }).decoded(Deliveries.self)
    #expect(count.count == 2)
  }

  @Test func aBackoffIsOneOfTheGroupsSettings() throws {
    let small = try SmallWorld()
    let (first, second) = (small.connect(), small.connect())
    Self.join(first, small, JoinGroup.Backoff(first: 1_000, longest: 2_000))
    Self.join(second, small, JoinGroup.Backoff(first: 1_000, longest: 3_000))
    let fault = try second.fault(on: 1)
    #expect(fault?.code == .groupMismatch && fault?.message.contains("2000 ms") == true)
  }

  @Test(arguments: [(0, 5), (5, 4), (5, 0)] as [(UInt32, UInt32)])
  func aBackoffThatCannotBeMeantIsRefused(first: UInt32, longest: UInt32) throws {
    let small = try SmallWorld()
    let client = small.connect()
    Self.join(client, small, JoinGroup.Backoff(first: first, longest: longest))
    #expect(try client.fault(on: 1)?.code == .invalidSetting)
  }
}
