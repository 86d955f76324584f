import ReactiveCore
import SluiceIO
import SluiceSession
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceClient

/// A broker that ends streams at random moments because their topics move, from a seed. Every record is in the topic once. Every subscriber gets the
/// topic's records once, in order, and no more than its demand.
@Suite struct MoveSeedTests {
  @Test(arguments: 1...60 as ClosedRange<UInt64>)
  func nothingIsLostOrRepeated(seed: UInt64) throws {
    let stage = try Stage(seed: seed, conditions: SimulatedConditions()) {
      $0.topicDefaults = TopicSettings(replayRecords: .max, replayBytes: .max, replayAge: .max)
      $0.limits.producerWindow = 64
    }
    let world = stage.world
    let clients = try (0..<3).map { number in
      try stage.client("client \(number)") {
        $0.seed = seed &+ UInt64(number)
        // A client without reconnection follows moves as well.
        if number > 0 { $0.reconnect = ReconnectPolicy() }
      }
    }
    let total = 200 + world.random.next(in: 0...200)
    let subject = clients[0].subject("t.a", buffer: .init(records: 50))
    var moved = 0

    /// Ends some of the open streams.
    func move() {
      stage.brokerLoop.perform {
        for context in stage.broker.contexts {
          for connection in context.connections {
            let streams = connection.streams
            for number in streams.session.openStreams where world.random.oneIn(3) {
              guard let object = streams.session.object(number), object.kind != .request else { continue }
              streams.refuse(number, Fault(code: .topicMoved, message: "moved by the test"))
              moved += 1
            }
          }
        }
      }
    }

    var subscribers: [DemandingSubscriber<TopicRecord>] = []
    func subscribe() {
      let manners = DemandingSubscriber<TopicRecord>.Manner.allCases
      let subscriber = DemandingSubscriber<TopicRecord>(
        manners[world.random.next(in: 0...manners.count - 1)], window: world.random.next(in: 1...50))
      if world.random.oneIn(5) { subscriber.cancelsAt = world.random.next(in: 1...total) }
      let client = clients[world.random.next(in: 0...2)]
      let prefetch: SubscriptionPlan.Prefetch =
        world.random.oneIn(2) ? .byRequest : .keepFull(world.random.next(in: 1...40))
      if world.random.oneIn(4) {
        client.topics(matching: "t.*", from: .earliest, prefetch: prefetch).subscribe(subscriber)
      } else {
        client.topic("t.a", from: .earliest, prefetch: prefetch).subscribe(subscriber)
      }
      subscribers.append(subscriber)
    }

    var sent = 0
    while sent < total {
      let portion = min(world.random.next(in: 1...40), total - sent)
      for number in sent..<sent + portion {
        let length = world.random.oneIn(20) ? 5_000 : 0
        subject.enqueue(Message("\(number) " + String(repeating: "x", count: length))) { result in
          if case .failure(let error) = result { Issue.record("\(error)") }
        }
      }
      sent += portion
      if world.random.oneIn(2), subscribers.count < 10 { subscribe() }
      for subscriber in subscribers { subscriber.poke(world.random.next(in: 1...30)) }
      if world.random.oneIn(12) { subscribers.last?.cancel() }
      if world.random.oneIn(2) { move() }
      world.run(for: world.random.next(in: .zero ... .milliseconds(40)))
    }
    // A subscriber that stays to the end.
    subscribe()
    subscribers.last?.cancelsAt = nil
    try stage.wait(subject.flush(completion:))
    for subscriber in subscribers { subscriber.poke(total) }
    move()
    let isOver = world.run(limit: .seconds(600)) {
      subscribers.allSatisfy { $0.isCancelled || $0.received.count == total }
    }
    #expect(isOver)
    world.run(for: .seconds(2))

    #expect(moved > 0)
    #expect(subject.acknowledgedCount == UInt64(total))
    for subscriber in subscribers {
      let numbers = subscriber.received.map { Int($0.string.prefix { $0 != " " }) }
      #expect(numbers == Array(0..<subscriber.received.count).map(Optional.init))
      #expect(subscriber.received.map(\.offset) == Array(0..<UInt64(subscriber.received.count)))
      #expect(subscriber.completion == nil)
    }
    #expect(clients.allSatisfy { $0.failure == nil })
    #expect(world.network.connections.count == clients.count)
  }
}
