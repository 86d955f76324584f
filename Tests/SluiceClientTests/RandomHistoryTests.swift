import ReactiveCore
import SluiceBroker
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceClient

/// Clients and a broker on a network that delays, splits and reorders, from a seed. Every subscriber gets the topic's records in order, without a
/// gap, and no more than its demand.
@Suite struct RandomHistoryTests {
  @Test(arguments: 1...60 as ClosedRange<UInt64>)
  func subscribersGetWhatTheyAskedForInOrder(seed: UInt64) throws {
    let stage = try Stage(seed: seed, conditions: SimulatedConditions()) {
      $0.topicDefaults = TopicSettings(replayRecords: .max, replayBytes: .max, replayAge: .max)
      $0.limits.producerWindow = 64
    }
    let world = stage.world
    let clients = try (0..<3).map { try stage.client("client \($0)") }
    let total = 400 + world.random.next(in: 0...400)
    let subject = clients[0].subject("t", buffer: .init(records: 100), whenFull: .fail)

    var subscribers: [DemandingSubscriber<TopicRecord>] = []
    func subscribe() {
      let manners = DemandingSubscriber<TopicRecord>.Manner.allCases
      let subscriber = DemandingSubscriber<TopicRecord>(
        manners[world.random.next(in: 0...manners.count - 1)], window: world.random.next(in: 1...50))
      if world.random.oneIn(5) { subscriber.cancelsAt = world.random.next(in: 1...total) }
      let prefetch: SubscriptionPlan.Prefetch =
        world.random.oneIn(2) ? .byRequest : .keepFull(world.random.next(in: 1...40))
      clients[world.random.next(in: 0...2)].topic("t", from: .earliest, prefetch: prefetch).subscribe(
        subscriber)
      subscribers.append(subscriber)
    }

    // Publish in portions, with subscribers that come and go between them.
    var sent = 0
    while sent < total {
      let portion = min(world.random.next(in: 1...40), total - sent)
      for number in sent..<sent + portion {
        // Some are long enough to be sent in pieces.
        let length = world.random.oneIn(20) ? 5_000 : 0
        subject.enqueue(Message("\(number) " + String(repeating: "x", count: length))) { result in
          if case .failure(let error) = result { Issue.record("\(error)") }
        }
      }
      sent += portion
      if world.random.oneIn(2), subscribers.count < 12 { subscribe() }
      for subscriber in subscribers { subscriber.poke(world.random.next(in: 1...30)) }
      if world.random.oneIn(10) { subscribers.last?.cancel() }
      world.run(for: world.random.next(in: .zero ... .milliseconds(20)))
    }
    try stage.wait { subject.complete(.finished, completion: $0) }
    for subscriber in subscribers { subscriber.poke(total) }
    let isOver = world.run {
      subscribers.allSatisfy { $0.isCancelled || $0.completion != nil }
    }
    #expect(isOver)

    for subscriber in subscribers {
      let numbers = subscriber.received.map { Int($0.string.prefix { $0 != " " }) }
      #expect(numbers == Array(0..<subscriber.received.count).map(Optional.init))
      #expect(subscriber.received.map(\.offset) == Array(0..<UInt64(subscriber.received.count)))
      if !subscriber.isCancelled {
        #expect(subscriber.received.count == total)
        #expect(subscriber.completion == .finished)
      }
    }
    #expect(clients.allSatisfy { $0.failure == nil })
    world.run(for: .seconds(1))
    #expect(try stage.subscriptions("t", clients[0]) == 0)
  }

  /// Every event uses demand, so a subscriber of events gets no more of them than its demand either.
  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func eventsAreExactToo(seed: UInt64) throws {
    let stage = try Stage(seed: seed, conditions: SimulatedConditions()) {
      $0.topicDefaults = TopicSettings(replayRecords: 20)
    }
    let world = stage.world
    let client = try stage.client()
    let subject = client.subject("t")
    var subscribers: [DemandingSubscriber<TopicEvent<TopicRecord>>] = []
    for _ in 0..<40 {
      for _ in 0..<world.random.next(in: 1...60) {
        subject.send(Message([UInt8](repeating: 0, count: world.random.next(in: 0...2_000))))
      }
      if world.random.oneIn(4) {
        let manners = DemandingSubscriber<TopicEvent<TopicRecord>>.Manner.allCases
        let subscriber = DemandingSubscriber<TopicEvent<TopicRecord>>(
          manners[world.random.next(in: 0...manners.count - 1)], window: world.random.next(in: 1...5))
        let prefetch: SubscriptionPlan.Prefetch = world.random.oneIn(2) ? .byRequest : .keepFull(3)
        client.topic("t", from: .offset(0), prefetch: prefetch).events.subscribe(subscriber)
        subscribers.append(subscriber)
      }
      for subscriber in subscribers { subscriber.poke(world.random.next(in: 1...30)) }
      world.run(for: world.random.next(in: .zero ... .milliseconds(20)))
    }
    try stage.wait { subject.complete(.finished, completion: $0) }
    for subscriber in subscribers { subscriber.poke(10_000) }
    #expect(world.run { subscribers.allSatisfy { $0.completion != nil } })

    for subscriber in subscribers {
      var next: UInt64 = 0
      var liveMarkers = 0
      for event in subscriber.received {
        switch event {
        case .record(let record):
          if record.offset != next { Issue.record("offset \(record.offset) instead of \(next)") }
          next = record.offset + 1
        case .lagged(let missed, let nextOffset):
          #expect(next + missed == nextOffset)
          next = nextOffset
        case .restarted: Issue.record("started anew")
        case .rewound: Issue.record("went back")
        case .producers: break
        case .topic: Issue.record("an event of a topic")
        case .live(let nextOffset):
          #expect(nextOffset == next)
          liveMarkers += 1
        }
      }
      #expect(liveMarkers == 1)
      #expect(next == subject.acceptedCount)
    }
    #expect(client.failure == nil)
  }
}
