import SluiceIO
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// A broker's counters of a topic's traffic.
@Suite struct TrafficTests {
  @Test func recordsAndBytesAreCountedOnBothSides() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    let subscribers = [
      try setting.subscriber("t", granted: .max), try setting.subscriber("t", granted: 3),
    ]
    // A grant this large counts as unlimited; added up, it would overflow the sum.
    _ = try setting.subscriber("u", granted: .max - 7)
    _ = try setting.subscriber("u", granted: 5)
    #expect(try setting.topic("u").traffic.requested == 5)
    setting.publish([1, 2], from: 0, by: publisher)
    setting.publish([3, 4], from: 2, by: publisher)
    let traffic = try setting.topic("t").traffic
    #expect(traffic.received == 4)
    // Each record with its length word.
    #expect(traffic.receivedBytes == 10 + 4 * 4)
    #expect(traffic.acknowledged == 4)
    #expect(traffic.granted == publisher.granted[1])
    #expect(traffic.sent == 7)
    #expect(traffic.sentBytes >= 26 + 6 + 3 * 4)
    #expect(traffic.requested == 3)
    #expect(subscribers[0].records[1]?.count == 4)
  }

  @Test func countersOutliveWhoeverCausedThem() throws {
    let setting = try SnapshotSetting(loops: 2)
    let publisher = try setting.publisher("t")
    let subscriber = try setting.subscriber("t", granted: 2)
    setting.publish([1, 1, 1], from: 0, by: publisher)
    setting.run(for: .milliseconds(20))
    publisher.leave()
    subscriber.leave(abruptly: true)
    try setting.wait(for: "all to leave") {
      setting.broker.core.registry.find("t")?.loopStates.isEmpty == true
    }
    let before = try setting.topic("t")
    #expect(before.traffic.received == 3)
    #expect(before.traffic.sent == 2)
    #expect(before.traffic.starved >= 18)
    #expect(before.subscriptions.isEmpty)
    let other = try setting.subscriber("t", granted: 1)
    let after = try setting.topic("t")
    #expect(other.records[1]?.count == 1)
    #expect(after.traffic.sent == 3)
    #expect(after.traffic.requested == 3)
  }

  @Test func aRepeatedGrantIsNotAskedForTwice() throws {
    let setting = try SnapshotSetting()
    let subscriber = try setting.subscriber("t", granted: 2)
    for granted: UInt64 in [5, 5, 3, 6] {
      subscriber.send(Demand(grantedThrough: granted).encoded(stream: 1))
    }
    setting.run()
    #expect(try setting.topic("t").traffic.requested == 6)
    subscriber.send(Demand(grantedThrough: .max).encoded(stream: 1))
    setting.run()
    let topic = try setting.topic("t")
    #expect(topic.traffic.requested == 6)
    #expect(topic.outstanding == nil)
  }

  @Test func aSubscriberWithoutDemandStarvesWhileThereAreRecords() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("t")
    let subscriber = try setting.subscriber("t", granted: 1)
    setting.run(for: .seconds(5))
    setting.publish([1], from: 0, by: publisher)
    setting.run(for: .seconds(5))
    // It has all available records, and hasn't waited for any.
    #expect(try setting.topic("t").traffic.starved == 0)
    setting.publish([1], from: 1, by: publisher)
    setting.run(for: .milliseconds(300))
    let starved = try setting.topic("t").traffic.starved
    #expect((299...310).contains(starved))
    subscriber.send(Demand(grantedThrough: 5).encoded(stream: 1))
    setting.run(for: .seconds(5))
    #expect((299...315).contains(try setting.topic("t").traffic.starved))
    #expect(try setting.topic("t").outstanding == 3)
  }

  @Test func aProducerWithoutDemandIsHeldUp() throws {
    let setting = try SnapshotSetting {
      $0.topicDefaults.flow = .lossless
      $0.topicDefaults.bufferRecords = 2
    }
    let subscriber = try setting.subscriber("t", granted: 1)
    let publisher = try setting.publisher("t")
    setting.publish([1, 1, 1], from: 0, by: publisher)
    setting.run(for: .milliseconds(400))
    var topic = try setting.topic("t")
    #expect((399...410).contains(topic.traffic.heldUp))
    #expect(topic.heldUp == topic.traffic.heldUp)
    #expect(topic.subscriptions.first?.info.holding ?? 0 > 0)
    #expect(topic.publications.first?.info.waiting ?? 0 > 0)
    #expect(topic.lag == 2)
    subscriber.send(Demand(grantedThrough: 100).encoded(stream: 1))
    setting.run(for: .seconds(2))
    topic = try setting.topic("t")
    #expect((399...415).contains(topic.traffic.heldUp))
    #expect(topic.heldUp == 0)
    #expect(topic.subscriptions.first?.info.holding == 0)
  }

  @Test func recordsThatWereDroppedAreMissed() throws {
    let setting = try SnapshotSetting { $0.topicDefaults.replayRecords = 1 }
    let publisher = try setting.publisher("t", acknowledgement: .none)
    let subscriber = try setting.subscriber("t", granted: 1)
    let largest = [Int](repeating: 60_000, count: 16)
    for round in 0..<12 { setting.publish(largest, from: UInt64(round * 16), by: publisher) }
    subscriber.send(Demand(grantedThrough: .max).encoded(stream: 1))
    try setting.wait(for: "the newest") { subscriber.records[1]?.count ?? 0 > 1 }
    setting.run(for: .milliseconds(50))
    let traffic = try setting.topic("t").traffic
    #expect(traffic.missed > 0)
    #expect(traffic.missed + traffic.sent == traffic.received)
    #expect(traffic.acknowledged == 0)
  }

  @Test func ofASharedDemandWhatWasUsedCountsAsAskedFor() throws {
    let setting = try SnapshotSetting()
    let publisher = try setting.publisher("a.b")
    let subscriber = try setting.peer("subscriber")
    subscriber.send(
      SubscribePattern(pattern: "a.*", start: .earliest, grantedThrough: 3).encoded(stream: 1))
    setting.run()
    setting.publish([1, 1], from: 0, by: publisher)
    var topic = try setting.topic("a.b")
    #expect(topic.traffic.requested == 2)
    #expect(topic.outstanding == 1)
    setting.publish([1, 1], from: 2, by: publisher)
    setting.run(for: .milliseconds(100))
    topic = try setting.topic("a.b")
    #expect(topic.traffic.requested == 3)
    #expect(topic.traffic.sent == 3)
    #expect((99...105).contains(topic.traffic.starved))
  }

  @Test func membersOfAGroupAreSentWhatTheyAreGiven() throws {
    let setting = try SnapshotSetting(loops: 2)
    let publisher = try setting.publisher("t")
    let members = [try setting.peer("one"), try setting.peer("two")]
    for member in members {
      member.send(JoinGroup(topic: "t", group: "g", start: .earliest, grantedThrough: 10).encoded(stream: 1))
    }
    setting.run()
    setting.publish([1, 1, 1, 1, 1, 1], from: 0, by: publisher)
    setting.run(for: .milliseconds(10))
    let topic = try setting.topic("t")
    #expect(topic.traffic.sent == 6)
    #expect(topic.traffic.requested == 20)
    #expect(topic.outstanding == 14)
  }
}
