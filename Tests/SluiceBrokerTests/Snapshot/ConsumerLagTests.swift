import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// The lag of durable cursors and groups, in a snapshot and in TOPIC_SHOW.
@Suite struct ConsumerLagTests {
  private static func request(_ count: Int) -> SnapshotRequest { SnapshotRequest(consumersPerTopic: count) }

  private func subscribe(_ setting: SnapshotSetting, cursor: String, granted: UInt64) throws -> ScenePeer {
    let peer = try setting.peer("reader")
    peer.send(
      Subscribe(topic: "t", start: .earliest, grantedThrough: granted, cursor: cursor).encoded(stream: 1))
    try setting.wait(for: "the subscription") { peer.records[1] != nil }
    return peer
  }

  @Test func aCursorsLagIsInRecordsBytesAndTime() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    let reader = try subscribe(setting, cursor: "c", granted: 10)
    setting.publish([10, 10, 10], from: 0, by: publisher)
    setting.run(for: .seconds(4))
    setting.publish([20], from: 3, by: publisher)
    reader.send(Commit(nextOffset: 2).encoded(stream: 1))
    setting.run(for: .seconds(6))
    let topic = try #require(try setting.snapshot(Self.request(5)).topics.first)
    #expect(topic.consumers.cursors == 1 && topic.consumers.groups == 0 && topic.consumers.behind == 1)
    let cursor = try #require(topic.consumers.furthest.first)
    #expect(cursor.name == "c" && cursor.kind == .cursor && cursor.nextOffset == 2)
    #expect(cursor.lag == 2 && cursor.members == 1 && cursor.idle == 0)
    // Two records of 10 and 20 bytes, each with its length word.
    #expect(cursor.bytes == 38)
    // The first of them is ten seconds old.
    #expect((10_000..<10_100).contains(cursor.age), "\(cursor.age)")
    #expect(topic.consumers.lag == 2 && topic.consumers.bytes == 38)

    reader.send(Commit(nextOffset: 4).encoded(stream: 1))
    setting.run()
    reader.leave()
    setting.run(for: .seconds(3))
    let done = try #require(try setting.snapshot(Self.request(5)).topics.first?.consumers)
    #expect(done.behind == 0 && done.furthest.first?.age == 0 && done.furthest.first?.bytes == 0)
    #expect(done.furthest[0].members == 0 && (2_900..<3_100).contains(done.furthest[0].idle))
    // Consumers are computed only on request.
    #expect(try setting.snapshot().topics[0].consumers == ConsumerSummary())
  }

  @Test func aGroupTellsWhatIsUnacknowledgedAndWhatCameAgain() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    let member = try setting.peer("member")
    let settings = JoinGroup.Settings(acknowledgement: .explicit, deliveries: 2, deadLetters: "dead")
    member.send(
      JoinGroup(topic: "t", group: "g", start: .earliest, settings: settings, grantedThrough: 10)
        .encoded(stream: 1))
    setting.run(for: .milliseconds(10))
    setting.publish([1, 1, 1], from: 0, by: publisher)
    setting.run(for: .milliseconds(10))
    func group() throws -> TopicInfo.Consumer {
      let topic = try #require(
        try setting.snapshot(Self.request(5)).topics.first { $0.summary.topic == "t" })
      return try #require(topic.consumers.furthest.first)
    }
    #expect(try group().unacknowledged == 3 && group().lag == 3 && group().kind == .group)
    member.send(Settle(.acknowledge, delivery: 1, firstOffset: 0, count: 1).encoded(stream: 1))
    member.send(Settle(.retry, delivery: 1, firstOffset: 1, count: 1).encoded(stream: 1))
    setting.run(for: .milliseconds(10))
    #expect(try group().lag == 2 && group().redeliveries == 1 && group().deadLetters == 0)
    member.send(Settle(.retry, delivery: 2, firstOffset: 1, count: 1).encoded(stream: 1))
    setting.run(for: .milliseconds(10))
    #expect(try group().deadLetters == 1 && group().unacknowledged == 1 && group().lag == 1)
    let sum = try setting.snapshot(Self.request(1)).topics.first { $0.summary.topic == "t" }?.consumers
    #expect(sum?.redeliveries == 1 && sum?.deadLetters == 1 && sum?.groups == 1)
  }

  @Test func thoseThatAreFurthestBehindAreListed() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    var readers: [ScenePeer] = []
    for count in 0..<30 {
      let reader = try subscribe(setting, cursor: "c\(count)", granted: 100)
      readers.append(reader)
    }
    setting.publish([Int](repeating: 1, count: 30), from: 0, by: publisher)
    for (count, reader) in readers.enumerated() {
      reader.send(Commit(nextOffset: UInt64(count)).encoded(stream: 1))
    }
    setting.run(for: .milliseconds(10))
    let consumers = try #require(try setting.snapshot(Self.request(3)).topics.first).consumers
    #expect(consumers.cursors == 30 && consumers.behind == 30)
    #expect(consumers.furthest.map(\.name) == ["c0", "c1", "c2"])
    #expect(consumers.furthest.map(\.lag) == [30, 29, 28])
  }

  @Test(
    "cursors have a limit of their own where one is stated, and groups keep theirs",
    arguments: [0, 1, 5, nil])
  func cursorsHaveALimitOfTheirOwn(limit: Int?) throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    var peers: [ScenePeer] = []
    for count in 0..<4 {
      peers.append(try subscribe(setting, cursor: "c\(count)", granted: 100))
      let member = try setting.peer("member")
      member.send(
        JoinGroup(topic: "t", group: "g\(count)", start: .earliest, grantedThrough: 0).encoded(stream: 1))
      peers.append(member)
    }
    setting.publish([Int](repeating: 1, count: 10), from: 0, by: publisher)
    for count in 0..<4 { peers[2 * count].send(Commit(nextOffset: UInt64(count + 1)).encoded(stream: 1)) }
    setting.run(for: .milliseconds(10))
    var request = Self.request(3)
    request.cursorsPerTopic = limit
    let consumers = try #require(try setting.snapshot(request).topics.first).consumers
    // All are counted, whatever the limits.
    #expect(consumers.cursors == 4 && consumers.groups == 4 && consumers.behind == 8)
    let cursors = consumers.furthest.filter { $0.kind == .cursor }.map(\.name)
    #expect(cursors == (0..<min(limit ?? 3, 4)).map { "c\($0)" })
    #expect(consumers.furthest.filter { $0.kind == .group }.count == 3)
    #expect(consumers.furthest.map(\.lag) == consumers.furthest.map(\.lag).sorted(by: >))
  }

  @Test func aSubscriptionThatAsksForNothingIsToldFromOneThatDoesntRead() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    let (idle, keen) = (
      try setting.subscriber("t", granted: 0), try setting.subscriber("t", granted: .max)
    )
    setting.run(for: .seconds(5))
    setting.publish([1], from: 0, by: publisher)
    setting.run(for: .seconds(7))
    let subscriptions = try setting.topic("t").subscriptions
    // The lagging subscription comes first.
    #expect(subscriptions.map(\.lag) == [1, 0])
    #expect((6_900..<7_100).contains(subscriptions[0].starved) && subscriptions[0].blocked == 0)
    #expect((6_900..<7_100).contains(subscriptions[0].age))
    #expect(subscriptions[1].starved == 0 && subscriptions[1].age == 0)
    _ = (idle, keen)
  }
}

/// The same for a topic on disk.
@Suite struct StoredConsumerLagTests {
  @Test func aCursorBelowTheRecordsInMemoryIsFoundInTheStore() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    _ = try client.create("t", DurableSetting.durable())
    try client.publishAll((0..<5).map { "record \($0)" }, to: "t")
    try client.moveCursor("c", of: "t", to: .offset(2))
    // After a restart no record is in memory.
    try setting.restart()
    let again = try setting.client()
    let info = try again.show("t")
    let cursor = try #require(info.consumers.first)
    #expect(info.consumerCount == 1 && cursor.name == "c" && cursor.lag == 3)
    #expect(cursor.age != TopicInfo.Consumer.unknown && cursor.age < 600_000)
    // Three records of eight bytes, each with its length word; the bytes of a batch are divided evenly.
    #expect(cursor.bytes == 36, "\(cursor.bytes)")
  }
}

@Suite struct StoredPlacesTests {
  private func place(_ offset: UInt64, time: Int64, bytes: UInt64) -> StoredPlaces.Place {
    StoredPlaces.Place(offset: offset, time: time, bytes: bytes, end: 1_000)
  }

  @Test func whatLiesBetweenTwoPlacesIsEstimated() {
    let places = StoredPlaces()
    #expect(places.place(of: 5) == nil)
    places.add([place(100, time: 1_000, bytes: 900), place(200, time: 3_000, bytes: 700)])
    #expect(places.place(of: 100)?.isExact == true && places.place(of: 100)?.place.time == 1_000)
    #expect(places.place(of: 50) == nil)
    let between = places.place(of: 150)
    #expect(between?.isExact == false && between?.place.time == 2_000 && between?.place.bytes == 800)
    #expect(places.place(of: 300)?.place.time == 3_000)
  }

  @Test func theOldestIsReplaced() {
    let places = StoredPlaces()
    for offset in 0...UInt64(StoredPlaces.kept) { places.add([place(offset, time: 0, bytes: 0)]) }
    #expect(places.place(of: 0) == nil)
    #expect(places.place(of: UInt64(StoredPlaces.kept))?.isExact == true)
  }
}
