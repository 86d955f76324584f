import ReactiveCore
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceClient

/// The Reactive Streams rules for subscriptions, 3.1 to 3.17, for a topic of a real broker, both for records and for decoded values. The connection either
/// stays up or is lost while the subscription is active.
///
/// | rule | in short | here |
/// |---|---|---|
/// | 3.1 | request and cancel are called within the subscriber's context | the caller's rule; a topic doesn't need it: `RuleThreadTests` calls from everywhere |
/// | 3.2 | request may be called from within onNext and onSubscribe | `rule302…` |
/// | 3.3 | synchronous recursion is bounded | `rule303…` |
/// | 3.4 | request returns soon | `rule304…`: it calls no subscriber and waits for nothing |
/// | 3.5 | cancel returns soon, may be repeated and called from any thread | `rule305…`, `RuleThreadTests` |
/// | 3.6 | after cancel(), request does nothing | `rule306…` |
/// | 3.7 | after cancel(), cancel() does nothing | `rule307…` |
/// | 3.8 | request(n) adds n | `rule308…` |
/// | 3.9 | request(n) with n ≤ 0 is onError | `Demand` can't be negative, and requesting nothing is a programming error that traps: `rule309…` |
/// | 3.10 | request may call onNext synchronously | it never does: `rule310…` |
/// | 3.11 | request may call onComplete or onError synchronously | it never does: `rule310…` |
/// | 3.12 | cancel() makes the signals stop in the end | `rule312…`: at the broker too |
/// | 3.13 | cancel() drops the references to the subscriber in the end | `rule313…`: immediately |
/// | 3.14 | cancel() may shut the publisher down when it was the last | the topic continues: `rule314…` |
/// | 3.15 | cancel() returns normally | `rule305…`: it can't throw |
/// | 3.16 | request returns normally | `rule304…`: it can't throw |
/// | 3.17 | any number of requests, up to 2^63-1 in all, which counts as unbounded | `rule317…` |
@Suite struct SubscriptionRuleTests {
  @Test(arguments: RuleScene.Variant.all)
  func rule302RequestsFromWithinSignalsCount(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(20)
    // The first request is made within receive(subscription:) as well.
    let subscriber = RuleSubscriber(.max(1)) { subscriber, value in
      if Int(value)! < 9 { subscriber.request(.max(1)) }
      return .none
    }
    scene.subscribe(subscriber)
    try scene.disturb()
    #expect(subscriber.values == (0..<10).map { "\($0)" })
    #expect(subscriber.violations == [])
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule303RequestsFromWithinValuesDontNest(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(2_000)
    let subscriber = RuleSubscriber(.max(1)) { subscriber, _ in
      subscriber.request(.max(3))
      return .none
    }
    scene.subscribe(subscriber)
    try scene.disturb()
    try scene.publish(2_000)
    #expect(subscriber.values.count == 4_000)
    #expect(subscriber.deepest == 1)
    #expect(subscriber.violations == [])
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule304RequestReturnsAtOnce(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(10)
    let subscriber = RuleSubscriber(.none)
    scene.subscribe(subscriber)
    try scene.disturb()
    // The world stands still here: if it waited for anything, it would wait forever.
    for _ in 0..<100_000 { subscriber.request(.max(1)) }
    #expect(subscriber.signals == ["subscription"])
    try scene.disturb()
    #expect(subscriber.values.count == 10)
    #expect(subscriber.violations == [])
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule305CancelReturnsAtOnce(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(10)
    // Before the subscription reaches the loop, while it opens, while it is open, and while there is no connection.
    let subscribers = (0..<4).map { _ in RuleSubscriber(.max(1)) }
    scene.subscribe(subscribers[0])
    subscribers[0].cancel()
    scene.subscribe(subscribers[1])
    scene.stage.world.run(for: .microseconds(30))
    subscribers[1].cancel()
    scene.subscribe(subscribers[2])
    scene.subscribe(subscribers[3])
    try scene.disturb()
    subscribers[2].cancel()
    scene.stage.world.network.connections.last?.reset()
    scene.stage.world.run(for: .milliseconds(5))
    subscribers[3].cancel()
    scene.stage.world.run(for: .seconds(10))
    #expect(try scene.subscriptions() == 0)
    for subscriber in subscribers { #expect(subscriber.violations == []) }
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule306AfterCancelRequestsDoNothing(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(10)
    let subscriber = RuleSubscriber(.max(2))
    scene.subscribe(subscriber)
    try scene.disturb()
    subscriber.cancel()
    for _ in 0..<10 { subscriber.request(.max(1)) }
    subscriber.request(.unlimited)
    try scene.disturb()
    subscriber.request(.max(1))
    try scene.disturb()
    #expect(subscriber.values.count == 2)
    #expect(try scene.subscriptions() == 0)
    #expect(subscriber.violations == [])
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule307AfterCancelCancelDoesNothing(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    let (subscriber, neighbour) = (RuleSubscriber(.unlimited), RuleSubscriber(.unlimited))
    scene.subscribe(subscriber)
    try scene.disturb()
    subscriber.cancel()
    subscriber.cancel()
    try scene.disturb()
    // Another subscription uses the stream's number by now.
    scene.subscribe(neighbour)
    scene.settle()
    subscriber.cancel()
    try scene.publish(3)
    try scene.disturb()
    #expect(neighbour.values.count == 3)
    #expect(try scene.subscriptions() == 1)
    #expect(subscriber.violations + neighbour.violations == [])
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule308RequestsAddUp(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(100)
    let subscriber = RuleSubscriber(.max(1))
    scene.subscribe(subscriber)
    var total = 1
    for count in [1, 2, 3, 5, 8, 13] {
      subscriber.request(.max(count))
      subscriber.request(.max(1))
      total += count + 1
      try scene.disturb()
      #expect(subscriber.values.count == total)
    }
    // Demand requested long before records exist counts as well.
    subscriber.request(.max(100))
    try scene.disturb()
    try scene.publish(100)
    try scene.disturb()
    #expect(subscriber.values.count == total + 100)
    #expect(subscriber.values == (0..<total + 100).map { "\($0)" })
    #expect(subscriber.violations == [])
  }

  @Test func rule309ARequestForNothingStopsTheProgram() async throws {
    await #expect(processExitsWith: .failure) {
      let scene = try RuleScene(RuleScene.Variant(phase: .steady, kind: .records))
      let subscriber = RuleSubscriber(.none)
      scene.subscribe(subscriber)
      subscriber.request(.none)
    }
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule310RequestNeverSignalsByItself(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(5)
    try scene.end()
    // With a prefetch all records are here already.
    let subscriber = RuleSubscriber(.none)
    scene.client.topic("t", prefetch: .keepFull(10)).decoded { $0.string }.subscribe(subscriber)
    try scene.disturb()
    for count in 1...5 {
      let before = subscriber.signals.count
      subscriber.request(.max(1))
      #expect(subscriber.signals.count == before)
      scene.settle()
      #expect(subscriber.values.count == count)
    }
    #expect(subscriber.completion == .finished)
    #expect(subscriber.violations == [])
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule312AfterCancelTheBrokerKnows(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(10)
    let subscribers = (0..<3).map { _ in RuleSubscriber(.max(2)) }
    for subscriber in subscribers { scene.subscribe(subscriber) }
    try scene.disturb()
    #expect(try scene.subscriptions() == 3)
    for (index, subscriber) in subscribers.enumerated() {
      subscriber.cancel()
      // The question travels behind the cancellation.
      let shown = try scene.stage.wait { scene.client.topicInfo("t", completion: $0) }
      #expect(shown.subscriptions.count == 2 - index)
      try scene.disturb()
    }
    #expect(try scene.subscriptions() == 0)
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule313CancelLetsGoOfTheSubscriber(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(10)
    weak var cancelled: RuleSubscriber?
    weak var ended: RuleSubscriber?
    var subscription: (any Subscription)?
    do {
      let (first, second) = (RuleSubscriber(.max(1)), RuleSubscriber(.max(100)))
      (cancelled, ended) = (first, second)
      scene.subscribe(first)
      scene.subscribe(second)
      try scene.disturb()
      // The subscription doesn't retain the subscriber.
      subscription = first.subscription
      first.release()
      second.release()
    }
    #expect(cancelled != nil && ended != nil)
    subscription?.cancel()
    #expect(cancelled == nil)
    try scene.end()
    #expect(ended == nil)
    _ = subscription
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule314TheLastToLeaveLeavesTheTopic(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(3)
    let first = RuleSubscriber(.max(1))
    scene.subscribe(first)
    try scene.disturb()
    first.cancel()
    try scene.disturb()
    #expect(scene.client.failure == nil)
    try scene.publish(1)
    let second = RuleSubscriber(.unlimited)
    scene.subscribe(second)
    try scene.disturb()
    #expect(second.values == ["0", "1", "2", "3"])
    #expect(first.violations + second.violations == [])
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule317DemandHasNoBound(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(5)
    let subscribers = (0..<3).map { _ in RuleSubscriber(.max(1)) }
    for subscriber in subscribers { scene.subscribe(subscriber) }
    try scene.disturb()
    for subscriber in subscribers { #expect(subscriber.values.count == 1) }
    // Many requests, large ones, and a total beyond the maximum.
    for _ in 0..<50_000 { subscribers[0].request(.max(1)) }
    subscribers[1].request(.max(.max))
    subscribers[2].request(.max(.max - 1))
    subscribers[2].request(.max(.max))
    subscribers[2].request(.unlimited)
    subscribers[2].request(.max(1))
    try scene.disturb()
    try scene.publish(5)
    try scene.disturb()
    for subscriber in subscribers {
      #expect(subscriber.values.count == 10)
      #expect(subscriber.violations == [])
    }
    #expect(scene.client.failure == nil)
  }

  @Test(arguments: RuleScene.Variant.all)
  func aSlowSubscriberHoldsUpNobodyAndKeepsNothing(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    let (slow, ahead, quick) = (RuleSubscriber(.max(1)), RuleSubscriber(.max(1)), RuleSubscriber(.unlimited))
    scene.subscribe(slow)
    scene.subscribe(quick)
    scene.client.topic("t", from: .earliest, prefetch: .keepFull(10)).decoded { $0.string }.subscribe(ahead)
    try scene.disturb()
    for _ in 0..<4 { try scene.publish(500) }
    #expect(quick.values.count == 2_000)
    try scene.disturb()
    try scene.publish(500)
    #expect(quick.values.count == 2_500)
    #expect(slow.values.count == 1 && ahead.values.count == 1)
    // The broker sent only the records delivered and those prefetched, however many were published.
    let sent = try scene.sent()
    #expect(sent[0] <= 1 && sent[1] <= 11)
    slow.request(.max(3))
    ahead.request(.max(3))
    try scene.disturb()
    #expect(slow.values == ["0", "1", "2", "3"])
    #expect(ahead.values == slow.values)
    #expect(slow.violations + ahead.violations + quick.violations == [])
  }
}
