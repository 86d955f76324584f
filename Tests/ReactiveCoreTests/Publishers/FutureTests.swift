import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct FutureTests {
  @Test func runsAtOnceAndDeliversToEveryone() {
    var promise: Future<Int, Oops>.Promise?
    let future = Future<Int, Oops> { promise = $0 }
    #expect(promise != nil)
    let early = TrackingSubscriber<Int, Oops>(.max(1))
    let reserved = TrackingSubscriber<Int, Oops>()
    future.subscribe(early)
    future.subscribe(reserved)
    promise?(.success(5))
    promise?(.success(6))
    promise?(.failure(Oops()))
    #expect(early.history.events == [.subscription("Future"), .value(5), .finished])
    #expect(reserved.history.take() == [.subscription("Future")])
    reserved.subscription?.request(.max(1))
    #expect(reserved.history.take() == [.value(5), .finished])
    let late = TrackingSubscriber<Int, Oops>(.unlimited)
    future.subscribe(late)
    #expect(late.history.events == [.subscription("Future"), .value(5), .finished])
  }

  @Test func aFailureNeedsNoDemand() {
    let future = Future<Int, Oops> { $0(.failure(Oops(number: 1))) }
    let subscriber = TrackingSubscriber<Int, Oops>()
    future.subscribe(subscriber)
    #expect(subscriber.history.events == [.subscription("Future"), .failed(Oops(number: 1))])
  }

  @Test func deliversNothingAfterCancellation() {
    var promise: Future<Int, Oops>.Promise?
    let future = Future<Int, Oops> { promise = $0 }
    let subscriber = TrackingSubscriber<Int, Oops>(.max(1))
    future.subscribe(subscriber)
    subscriber.subscription?.cancel()
    promise?(.success(1))
    subscriber.subscription?.request(.max(1))
    #expect(subscriber.history.events == [.subscription("Future")])
  }

  @Test func settlesInTheOrderOfSubscription() {
    var promise: Future<Int, Never>.Promise?
    let future = Future<Int, Never> { promise = $0 }
    var order: [Int] = []
    let subscriptions = (0..<20).map { number in future.sink { _ in order.append(number) } }
    promise?(.success(0))
    #expect(order == Array(0..<20))
    withExtendedLifetime(subscriptions) {}
  }

  @Test(arguments: [true, false]) func releasesItsSubscribers(isCancelled: Bool) {
    var isReleased = false
    var promise: Future<Int, Oops>.Promise?
    let future = Future<Int, Oops> { promise = $0 }
    do {
      let subscriber = TrackingSubscriber<Int, Oops>(.max(1))
      subscriber.onDeinit = { isReleased = true }
      future.subscribe(subscriber)
      if isCancelled { subscriber.subscription?.cancel() } else { promise?(.success(1)) }
    }
    #expect(isReleased)
    withExtendedLifetime(future) {}
  }

  @Test func subscribingAndSettlingMayRace() async {
    for _ in 0..<200 {
      var made: Future<Int, Oops>.Promise?
      let future = UncheckedBox(Future<Int, Oops> { made = $0 })
      let promise = made!
      let subscriber = UncheckedBox(TrackingSubscriber<Int, Oops>(.max(1)))
      async let settling: Void = promise(.success(1))
      async let subscribing: Void = future.value.subscribe(subscriber.value)
      _ = await (settling, subscribing)
      #expect(subscriber.value.history.events == [.subscription("Future"), .value(1), .finished])
    }
  }

  @Test func showsWhatItHolds() {
    let future = Future<Int, Oops> { _ in }
    let subscriber = TrackingSubscriber<Int, Oops>()
    future.subscribe(subscriber)
    let labels = Mirror(reflecting: subscriber.subscription!).children.map(\.label)
    #expect(labels == ["parent", "downstream", "hasAnyDemand", "subject"])
  }
}
