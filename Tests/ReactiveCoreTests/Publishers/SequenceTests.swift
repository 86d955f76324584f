import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct SequenceTests {
  @Test func deliversAsMuchAsAskedForAndFinishesWithTheLast() {
    let subscriber = TrackingSubscriber<Int, Never>()
    [1, 2, 3].publisher.subscribe(subscriber)
    #expect(subscriber.history.take() == [.subscription("[1, 2, 3]")])
    subscriber.subscription?.request(.max(2))
    #expect(subscriber.history.take() == [.value(1), .value(2)])
    subscriber.subscription?.request(.max(1))
    #expect(subscriber.history.take() == [.value(3), .finished])
    subscriber.subscription?.request(.max(1))
    #expect(subscriber.history.take() == [])
    #expect(String(describing: subscriber.subscription!) == "Sequence")
  }

  @Test func anEmptySequenceFinishesAtOnce() {
    let subscriber = TrackingSubscriber<Int, Never>()
    [Int]().publisher.subscribe(subscriber)
    #expect(subscriber.history.events == [.subscription("Empty"), .finished])
  }

  @Test func addsTheDemandReturnedAndThatOfRequestsWithinAValue() {
    let subscriber = TrackingSubscriber<Int, Never>(.max(1))
    subscriber.onValue = { [unowned subscriber] in
      subscriber.demandPerValue = $0 == 1 ? .max(1) : .none
      if $0 == 2 { subscriber.subscription?.request(.max(2)) }
    }
    (1...9).publisher.subscribe(subscriber)
    #expect(
      subscriber.history.events == [.subscription("1...9"), .value(1), .value(2), .value(3), .value(4)])
  }

  @Test func cancellingWithinAValueStopsAtOnce() {
    let subscriber = TrackingSubscriber<Int, Never>(.unlimited)
    subscriber.onValue = { [unowned subscriber] in if $0 == 2 { subscriber.subscription?.cancel() } }
    [1, 2, 3].publisher.subscribe(subscriber)
    #expect(subscriber.history.events == [.subscription("[1, 2, 3]"), .value(1), .value(2)])
  }

  @Test func cancellingWithinTheLastValuePreventsTheFinish() {
    let subscriber = TrackingSubscriber<Int, Never>(.unlimited)
    subscriber.onValue = { [unowned subscriber] _ in subscriber.subscription?.cancel() }
    [1].publisher.subscribe(subscriber)
    #expect(subscriber.history.events == [.subscription("[1]"), .value(1)])
  }

  @Test func aMillionValuesOneByOneNeedNoMoreStackThanOne() {
    final class OneByOne: Subscriber {
      typealias Input = Int
      typealias Failure = Never
      var subscription: (any Subscription)?
      var sum = 0
      func receive(subscription: any Subscription) {
        self.subscription = subscription
        subscription.request(.max(1))
      }
      func receive(_ input: Int) -> Subscribers.Demand {
        sum += input
        subscription?.request(.max(1))
        return .none
      }
      func receive(completion: Subscribers.Completion<Never>) { sum = -sum }
    }
    let subscriber = OneByOne()
    (1...1_000_000).publisher.subscribe(subscriber)
    #expect(subscriber.sum == -500_000_500_000)
  }

  @Test func showsItsSequence() {
    let subscriber = TrackingSubscriber<Int, Never>()
    [7, 8].publisher.subscribe(subscriber)
    let children = Mirror(reflecting: subscriber.subscription!).children
    #expect(children.map(\.label) == ["sequence"])
    #expect(children.first?.value as? [Int] == [7, 8])
    #expect([1].publisher == [1].publisher)
  }

  @Test(arguments: [End.finish, .cancel]) func releasesEverything(end: End) {
    final class Token {}
    weak var token: Token?
    var isReleased = false
    do {
      let strong = Token()
      token = strong
      let subscriber = TrackingSubscriber<ObjectIdentifier, Never>()
      subscriber.onDeinit = { isReleased = true }
      [strong].publisher.map { ObjectIdentifier($0) }.subscribe(subscriber)
      if end == .finish {
        subscriber.subscription?.request(.unlimited)
      } else {
        subscriber.subscription?.cancel()
      }
    }
    #expect(token == nil)
    #expect(isReleased)
  }

  @Test func requestsFromManyThreadsDeliverExactlyWhatWasAskedFor() async {
    for _ in 0..<50 {
      let subscriber = UncheckedBox(TrackingSubscriber<Int, Never>())
      (1...10_000).publisher.subscribe(subscriber.value)
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<4 {
          group.addTask { for _ in 0..<100 { subscriber.value.subscription?.request(.max(1)) } }
        }
      }
      let values = subscriber.value.history.events.dropFirst()
      #expect(values == (1...400).map { .value($0) }[...])
    }
  }

  @Test func cancellationMayRaceWithDelivery() async {
    for _ in 0..<200 {
      let subscriber = UncheckedBox(TrackingSubscriber<Int, Never>())
      (1...500).publisher.subscribe(subscriber.value)
      let subscription = UncheckedBox(subscriber.value.subscription!)
      async let requesting: Void = subscription.value.request(.unlimited)
      async let cancelling: Void = subscription.value.cancel()
      _ = await (requesting, cancelling)
      #expect(subscriber.value.history.events.filter { $0 == .finished }.count <= 1)
    }
  }
}
