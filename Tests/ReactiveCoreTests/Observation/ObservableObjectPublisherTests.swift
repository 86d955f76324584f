import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct ObservableObjectPublisherTests {
  /// Counts its values.
  private final class Counter: Subscriber {
    typealias Input = Void
    typealias Failure = Never

    var subscription: (any Subscription)?
    var count = 0
    var onDeinit: () -> Void = {}

    deinit { onDeinit() }

    func receive(subscription: any Subscription) { self.subscription = subscription }

    func receive(_ input: Void) -> Subscribers.Demand {
      count += 1
      return .none
    }

    func receive(completion: Subscribers.Completion<Never>) {}
  }

  @Test func theFirstRequestStandsForAll() {
    let publisher = ObservableObjectPublisher()
    let counter = Counter()
    publisher.subscribe(counter)
    publisher.send()
    #expect(counter.count == 0)
    counter.subscription?.request(.max(1))
    for _ in 0..<5 { publisher.send() }
    #expect(counter.count == 5)
    counter.subscription?.cancel()
    counter.subscription?.cancel()
    counter.subscription?.request(.unlimited)
    publisher.send()
    #expect(counter.count == 5)
  }

  @Test func showsItsSubscription() {
    let publisher = ObservableObjectPublisher()
    let counter = Counter()
    publisher.subscribe(counter)
    #expect(counter.subscription.map { "\($0)" } == "ObservableObjectPublisher")
    #expect(Mirror(reflecting: counter.subscription!).children.map(\.label) == ["downstream"])
    counter.subscription?.cancel()
  }

  @Test func cancellationReleasesTheSubscriber() {
    var isReleased = false
    let publisher = ObservableObjectPublisher()
    do {
      let counter = Counter()
      counter.onDeinit = { isReleased = true }
      publisher.subscribe(counter)
      counter.subscription?.request(.unlimited)
      counter.subscription?.cancel()
    }
    #expect(isReleased)
  }

  @Test func everySendOfRacingThreadsIsHeard() async {
    let publisher = ObservableObjectPublisher()
    let counter = Counter()
    publisher.subscribe(counter)
    counter.subscription?.request(.unlimited)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 { group.addTask { for _ in 0..<1000 { publisher.send() } } }
    }
    #expect(counter.count == 4000)
    counter.subscription?.cancel()
  }
}
