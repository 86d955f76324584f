import ReactiveCore
import SluiceWire
import TestSupport
import Testing

@testable import SluiceClient

/// Subscriptions whose broker returns without the last records of a durable topic.
@Suite struct RewindTests {
  private let broker: ScriptedBroker
  private let client: Client

  init() throws {
    broker = try ScriptedBroker()
    client = try broker.client { $0.reconnect = ReconnectPolicy() }
  }

  private func subscribed(_ epoch: UInt64, from offset: UInt64) {
    broker.send(Subscribed(epoch: epoch, nextOffset: offset, liveOffset: offset, continues: epoch != 1), 1)
    broker.settle()
  }

  private func deliver(_ first: UInt64, _ texts: [String]) {
    broker.send(TestSupport.deliver(stream: 1, firstOffset: first, texts))
    broker.settle()
  }

  private func commits() throws -> [UInt64] {
    try broker.takeReceived().filter { $0.type == .commit }.map { try $0.decode(Commit.self).nextOffset }
  }

  @Test(arguments: [nil, SubscriptionPlan.Lag.skip, .fail])
  func itGoesOnWithWhatIsThereAndSaysSo(lag: SubscriptionPlan.Lag?) throws {
    let recorder = Recorder<TopicEvent<TopicRecord>>()
    client.topic("t", lag: lag).events.subscribe(recorder)
    _ = broker.takeReceived()
    subscribed(1, from: 0)
    deliver(0, ["a", "b", "c"])
    broker.breakOff()
    #expect(try broker.takeOnly(Subscribe.self).epoch == 1)
    subscribed(2, from: 1)
    deliver(1, ["x", "y"])
    broker.breakOff()
    // The next subscription continues in that epoch.
    let again: Subscribe = try broker.takeOnly()
    #expect(again.epoch == 2 && again.start == .offset(3))
    subscribed(3, from: 3)
    deliver(3, ["z"])
    #expect(
      recorder.history == [
        .subscription, .value("a"), .value("b"), .value("c"), .rewound(1), .value("x"), .value("y"),
        .value("z"),
      ])
    #expect(client.failure == nil)
  }

  @Test func demandIsExactAcrossIt() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(5))
    client.topic("t").subscribe(recorder)
    _ = broker.takeReceived()
    subscribed(1, from: 0)
    deliver(0, ["a", "b", "c"])
    broker.breakOff()
    #expect(try broker.takeOnly(Subscribe.self).grantedThrough == 2)
    subscribed(2, from: 0)
    deliver(0, ["a", "x"])
    #expect(recorder.history.suffix(2) == [.value("a"), .value("x")])
    #expect(broker.takeReceived().isEmpty)
    recorder.subscription?.request(.max(1))
    #expect(try broker.takeOnly(Demand.self).grantedThrough == 3)
  }

  /// The event uses one requested value, and no record is requested in its place.
  @Test func theEventCountsAgainstDemand() throws {
    let recorder = Recorder<TopicEvent<TopicRecord>>(initial: .max(4))
    client.topic("t").events.subscribe(recorder)
    _ = broker.takeReceived()
    subscribed(1, from: 0)
    deliver(0, ["a", "b"])
    broker.breakOff()
    #expect(try broker.takeOnly(Subscribe.self).grantedThrough == 2)
    subscribed(2, from: 1)
    deliver(1, ["x", "y"])
    #expect(recorder.history == [.subscription, .value("a"), .value("b"), .rewound(1), .value("x")])
    recorder.subscription?.request(.max(1))
    broker.settle()
    #expect(recorder.history.last == .value("y"))
  }

  /// Received values without demand are still delivered, before the records that now have their offsets.
  @Test func whatWaitsComesFirst() throws {
    let recorder = Recorder<TopicEvent<TopicRecord>>(initial: .max(1))
    client.topic("t", prefetch: .keepFull(8)).events.subscribe(recorder)
    _ = broker.takeReceived()
    subscribed(1, from: 0)
    deliver(0, ["a", "b"])
    broker.breakOff()
    _ = broker.takeReceived()
    subscribed(2, from: 0)
    deliver(0, ["x"])
    recorder.subscription?.request(.unlimited)
    broker.settle()
    #expect(recorder.history == [.subscription, .value("a"), .value("b"), .rewound(0), .value("x")])
  }

  @Test func theSameLifeMayStillNotGoBack() throws {
    client.topic("t").subscribe(Recorder<TopicRecord>())
    _ = broker.takeReceived()
    subscribed(1, from: 0)
    deliver(0, ["a", "b"])
    broker.breakOff()
    _ = broker.takeReceived()
    subscribed(1, from: 1)
    #expect(client.failure?.code == .protocolViolation)
  }

  // MARK: Durable cursors

  @Test func whatIsLostIsNotCommitted() throws {
    let records = Box<[TopicRecord]>([])
    let recorder = Recorder<TopicRecord> { _, record in
      records.value.append(record)
      return .none
    }
    client.topic("t", cursor: .init("c", commit: .manual)).subscribe(recorder)
    _ = broker.takeReceived()
    subscribed(1, from: 0)
    deliver(0, ["a", "b", "c", "d"])
    records.value[0].commit()
    #expect(try commits() == [1])
    broker.breakOff()
    _ = broker.takeReceived()
    // Commits wait until the meaning of their offsets is known.
    records.value[3].commit()
    #expect(try commits() == [])
    subscribed(2, from: 2)
    #expect(try commits() == [2])
    deliver(2, ["x", "y", "z"])
    // "c" and "d" have the offsets of other records.
    records.value[2].commit()
    #expect(try commits() == [])
    records.value[4].commit()
    #expect(try commits() == [3])
    records.value[6].commit()
    #expect(try commits() == [5])
  }

  @Test func whatIsStillThereIsCommittedLater() throws {
    let records = Box<[TopicRecord]>([])
    let recorder = Recorder<TopicRecord> { _, record in
      records.value.append(record)
      return .none
    }
    client.topic("t", cursor: .init("c", commit: .manual)).subscribe(recorder)
    _ = broker.takeReceived()
    subscribed(1, from: 0)
    deliver(0, ["a", "b", "c", "d"])
    broker.breakOff()
    _ = broker.takeReceived()
    subscribed(2, from: 3)
    records.value[1].commit()
    #expect(try commits() == [2])
    records.value[3].commit()
    #expect(try commits() == [3])
  }

  @Test func automaticCommitsFollowWhatWasHandedOver() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(2))
    client.topic("t", cursor: "c", prefetch: .keepFull(8)).subscribe(recorder)
    _ = broker.takeReceived()
    subscribed(1, from: 0)
    deliver(0, ["a", "b", "c", "d"])
    #expect(try commits() == [2])
    broker.breakOff()
    _ = broker.takeReceived()
    subscribed(2, from: 3)
    #expect(try commits() == [2])
    // "c" and "d"; the topic still has only the former.
    recorder.subscription?.request(.max(2))
    #expect(try commits() == [3])
    deliver(3, ["x"])
    #expect(try commits() == [])
    recorder.subscription?.request(.max(1))
    #expect(try commits() == [4])
  }
}
