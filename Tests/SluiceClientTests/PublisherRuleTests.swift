import ReactiveCore
import SluiceIO
import SluiceWire
import Testing

@testable import SluiceClient

/// The Reactive Streams rules for publishers, 1.1 to 1.11, for a topic of a real broker, both for records and for decoded values. The connection
/// either stays up or is lost while the subscription is active. The rules' onSubscribe is `receive(subscription:)` here, and so on.
///
/// | rule | in short | here |
/// |---|---|---|
/// | 1.1 | never more onNext than requested | `rule101…` |
/// | 1.2 | fewer are allowed, and then an end | `rule102…` |
/// | 1.3 | signals come one after the other | `rule103…`, and from real threads in `RuleThreadTests` |
/// | 1.4 | a failure is signalled by onError | `rule104…` |
/// | 1.5 | a finite stream ends with onComplete | `rule105…` |
/// | 1.6 | after an end the subscription counts as cancelled | `rule106…` |
/// | 1.7 | nothing after an end | `rule107…` |
/// | 1.8 | after cancel() the signals stop | `rule108…`, `RuleThreadTests` |
/// | 1.9 | onSubscribe comes first, and subscribe returns normally; null is rejected | `rule109…`; a null subscriber isn't possible |
/// | 1.10 | subscribe may be called often, each time with another subscriber | `rule110…` |
/// | 1.11 | several subscribers are supported, each by itself | `rule111…` |
@Suite struct PublisherRuleTests {
  @Test(arguments: RuleScene.Variant.all)
  func rule101NeverMoreThanRequested(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(50)
    let subscriber = RuleSubscriber(.max(3)) { _, value in value == "1" ? .max(2) : .none }
    scene.subscribe(subscriber)
    try scene.disturb()
    #expect(subscriber.values.count == 5)
    subscriber.request(.max(1))
    try scene.disturb()
    #expect(subscriber.values.count == 6)
    try scene.publish(10)
    try scene.disturb()
    #expect(subscriber.values == (0..<6).map { "\($0)" })
    // The broker sent no more than that either; records sent before the connection was lost aren't counted twice.
    if variant.phase == .steady { #expect(try scene.sent() == [6]) }
    #expect(subscriber.violations == [])
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule102FewerThanRequestedAndThenTheEnd(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(3)
    let subscribers = [RuleSubscriber(.max(10)), RuleSubscriber(.unlimited)]
    for subscriber in subscribers { scene.subscribe(subscriber) }
    try scene.disturb()
    try scene.end()
    try scene.disturb()
    for subscriber in subscribers {
      #expect(subscriber.values.count == 3)
      #expect(subscriber.completion == .finished)
      #expect(subscriber.violations == [])
    }
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule103SignalsComeOneAfterTheOther(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(40)
    // Requests more from within each signal, in both ways.
    let subscriber = RuleSubscriber(.max(1)) { subscriber, _ in
      subscriber.request(.max(1))
      return .max(1)
    }
    scene.subscribe(subscriber)
    try scene.disturb()
    try scene.publish(40)
    try scene.end()
    try scene.disturb()
    #expect(subscriber.deepest == 1)
    #expect(subscriber.signals == ["subscription"] + Array(repeating: "value", count: 80) + ["completion"])
    #expect(subscriber.violations == [])
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule104AFailureIsSignalled(_ variant: RuleScene.Variant) throws {
    // A topic that its producer fails, a deleted topic, an invalid name, and a closed client.
    let scene = try RuleScene(variant)
    try scene.publish(1)
    let failed = RuleSubscriber(.unlimited)
    scene.subscribe(failed)
    try scene.disturb()
    try scene.end(.failure(.topicFailure("enough")))
    guard case .failure(let error) = failed.completion else { throw StageError.noAnswer }
    #expect(error.code == .topicFailed && error.message == "enough")
    #expect(failed.violations == [])

    let second = try RuleScene(variant)
    let (deleted, closed) = (RuleSubscriber(.none), RuleSubscriber(.none))
    second.subscribe(deleted)
    try second.disturb()
    try second.stage.wait { second.other.deleteTopic("t", completion: $0) }
    second.settle()
    guard case .failure(let error) = deleted.completion else { throw StageError.noAnswer }
    #expect(error.code == .topicDeleted)
    second.client.topic("another").decoded { $0.string }.subscribe(closed)
    try second.disturb()
    second.closeClient()
    guard case .failure(let error) = closed.completion else { throw StageError.noAnswer }
    #expect(error.code == .closed)

    let misnamed = RuleSubscriber(.unlimited)
    let third = try RuleScene(variant)
    third.client.topic("not a name").decoded { $0.string }.subscribe(misnamed)
    try third.disturb()
    guard case .failure(let error) = misnamed.completion else { throw StageError.noAnswer }
    #expect(error.code == .invalidTopic)
    #expect(misnamed.signals == ["subscription", "completion"])
    #expect(deleted.violations + closed.violations + misnamed.violations == [])
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule105AFiniteTopicIsFinished(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    let (early, none) = (RuleSubscriber(.max(2)), RuleSubscriber(.none))
    scene.subscribe(early)
    scene.subscribe(none)
    try scene.disturb()
    try scene.publish(2)
    try scene.end()
    try scene.disturb()
    let late = RuleSubscriber(.max(2))
    scene.subscribe(late)
    try scene.disturb()
    #expect(early.completion == .finished && late.completion == .finished)
    // The end needs no demand, but values before it do.
    #expect(none.completion == nil)
    none.request(.max(2))
    try scene.disturb()
    #expect(none.completion == .finished && none.values == ["0", "1"])
    let empty = RuleSubscriber(.none)
    scene.client.topic("t", from: .offset(2)).decoded { $0.string }.subscribe(empty)
    try scene.disturb()
    #expect(empty.signals == ["subscription", "completion"])
    #expect(early.violations + none.violations + late.violations + empty.violations == [])
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule106AfterTheEndTheSubscriptionIsOver(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(2)
    let subscriber = RuleSubscriber(.unlimited)
    scene.subscribe(subscriber)
    try scene.disturb()
    try scene.end()
    #expect(subscriber.completion == .finished)
    #expect(try scene.subscriptions() == 0)
    // As after a cancellation, these calls have no effect.
    subscriber.request(.max(5))
    subscriber.cancel()
    subscriber.request(.unlimited)
    try scene.disturb()
    #expect(try scene.subscriptions() == 0)
    #expect(subscriber.violations == [])
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule107NothingAfterTheEnd(_ variant: RuleScene.Variant) throws {
    for ending in [Subscribers.Completion<ClientError>.finished, .failure(.topicFailure("enough"))] {
      let scene = try RuleScene(variant)
      let subscriber = RuleSubscriber(.unlimited)
      scene.subscribe(subscriber)
      try scene.disturb()
      try scene.publish(3)
      try scene.end(ending)
      try scene.disturb()
      scene.closeClient()
      #expect(subscriber.signals == ["subscription", "value", "value", "value", "completion"])
      #expect(subscriber.violations == [])
    }
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule108AfterCancelTheSignalsStop(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(10)
    // Cancel from outside, from within a value in the middle of a batch, and from within the subscription.
    let outside = RuleSubscriber(.max(5))
    let within = RuleSubscriber(.unlimited) { subscriber, value in
      if value == "3" { subscriber.cancel() }
      return .max(1)
    }
    scene.subscribe(outside)
    scene.subscribe(within)
    try scene.disturb()
    outside.request(.unlimited)
    outside.cancel()
    try scene.publish(10)
    try scene.end()
    scene.closeClient()
    #expect(outside.values.count == 5)
    #expect(within.values == ["0", "1", "2", "3"])
    #expect(outside.completion == nil && within.completion == nil)
    #expect(outside.violations + within.violations == [])
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule109TheSubscriptionComesFirstAndAtOnce(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(1)
    try scene.end()
    let subscriber = RuleSubscriber(.unlimited)
    scene.subscribe(subscriber)
    // Before subscribe returns, without the network, and without other signals.
    #expect(subscriber.signals == ["subscription"])
    try scene.disturb()
    #expect(subscriber.signals == ["subscription", "value", "completion"])
    // Also if the subscription can't succeed.
    scene.closeClient()
    let late = RuleSubscriber(.unlimited)
    scene.subscribe(late)
    #expect(late.signals == ["subscription"])
    scene.settle()
    #expect(late.signals == ["subscription", "completion"])
    #expect(subscriber.violations + late.violations == [])
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule110ATopicIsSubscribedToAsOftenAsOneLikes(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(2)
    var subscribers: [RuleSubscriber] = []
    for _ in 0..<20 {
      let subscriber = RuleSubscriber(.unlimited)
      scene.subscribe(subscriber)
      subscribers.append(subscriber)
    }
    try scene.disturb()
    for subscriber in subscribers.prefix(10) { subscriber.cancel() }
    try scene.disturb()
    for _ in 0..<20 {
      let subscriber = RuleSubscriber(.unlimited)
      scene.subscribe(subscriber)
      subscribers.append(subscriber)
    }
    try scene.disturb()
    #expect(try scene.subscriptions() == 30)
    for subscriber in subscribers {
      #expect(subscriber.values == ["0", "1"])
      #expect(subscriber.violations == [])
    }
  }

  @Test(arguments: RuleScene.Variant.all)
  func rule111SubscribersDontKnowOfEachOther(_ variant: RuleScene.Variant) throws {
    let scene = try RuleScene(variant)
    try scene.publish(10)
    let demands: [Subscribers.Demand] = [.none, .max(1), .max(4), .unlimited]
    let subscribers = demands.map { RuleSubscriber($0) }
    for subscriber in subscribers { scene.subscribe(subscriber) }
    try scene.disturb()
    #expect(subscribers.map(\.values.count) == [0, 1, 4, 10])
    subscribers[3].cancel()
    subscribers[0].request(.max(2))
    try scene.disturb()
    #expect(subscribers.map(\.values.count) == [2, 1, 4, 10])
    try scene.publish(1)
    subscribers[2].request(.unlimited)
    try scene.disturb()
    #expect(subscribers.map(\.values.count) == [2, 1, 11, 10])
    for subscriber in subscribers { #expect(subscriber.violations == []) }
  }
}
