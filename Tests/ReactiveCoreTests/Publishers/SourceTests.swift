import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct JustTests {
  @Test func deliversOnRequestAndFinishes() {
    let subscriber = TrackingSubscriber<Int, Never>()
    Just(5).subscribe(subscriber)
    #expect(subscriber.history.take() == [.subscription("Just")])
    subscriber.subscription?.request(.max(1))
    subscriber.subscription?.request(.max(1))
    #expect(subscriber.history.take() == [.value(5), .finished])
  }

  @Test func deliversNothingAfterCancellation() {
    let subscriber = TrackingSubscriber<Int, Never>()
    Just(5).subscribe(subscriber)
    subscriber.subscription?.cancel()
    subscriber.subscription?.request(.max(1))
    #expect(subscriber.history.take() == [.subscription("Just")])
  }

  @Test func showsItsValue() {
    let subscriber = TrackingSubscriber<Int, Never>()
    Just(5).subscribe(subscriber)
    #expect(Mirror(reflecting: subscriber.subscription!).children.map { $0.value as? Int } == [5])
    #expect(
      (subscriber.subscription as? any CustomPlaygroundDisplayConvertible)?.playgroundDescription as? Int == 5
    )
    #expect(Just(5) == Just(5))
  }

  @Test func releasesItsSubscriber() {
    var released = 0
    for isCancelled in [true, false] {
      let subscriber = TrackingSubscriber<Int, Never>()
      subscriber.onDeinit = { released += 1 }
      Just(5).subscribe(subscriber)
      if isCancelled { subscriber.subscription?.cancel() } else { subscriber.subscription?.request(.max(1)) }
    }
    #expect(released == 2)
  }

  @Test func stopsTheProgramOnARequestForNothing() async {
    await #expect(processExitsWith: .failure) {
      Just(1).subscribe(TrackingSubscriber(Subscribers.Demand.none))
    }
  }
}

@Suite struct OptionalPublisherTests {
  @Test func deliversTheValue() {
    let subscriber = TrackingSubscriber<Int, Never>(.max(1))
    Optional(5).publisher.subscribe(subscriber)
    #expect(subscriber.history.events == [.subscription("Optional"), .value(5), .finished])
  }

  @Test func finishesAtOnceWithoutOne() {
    let subscriber = TrackingSubscriber<Int, Never>()
    Int?.none.publisher.subscribe(subscriber)
    #expect(subscriber.history.events == [.subscription("Empty"), .finished])
    #expect(Int?.none.publisher == Int?.none.publisher)
  }
}

@Suite struct ResultPublisherTests {
  @Test func deliversTheValue() {
    let subscriber = TrackingSubscriber<Int, Oops>(.max(1))
    Result<Int, Oops>.success(5).publisher.subscribe(subscriber)
    #expect(subscriber.history.events == [.subscription("Once"), .value(5), .finished])
  }

  @Test func failsAtOnce() {
    let subscriber = TrackingSubscriber<Int, Oops>()
    Result<Int, Oops>.Publisher(Oops(number: 1)).subscribe(subscriber)
    #expect(subscriber.history.events == [.subscription("Empty"), .failed(Oops(number: 1))])
    #expect(Result<Int, Oops>.Publisher(1) == Result<Int, Oops>.success(1).publisher)
  }
}

@Suite struct EmptyTests {
  @Test func finishesAtOnceOrNever() {
    let subscriber = TrackingSubscriber<Int, Oops>(.unlimited)
    Empty(outputType: Int.self, failureType: Oops.self).subscribe(subscriber)
    #expect(subscriber.history.take() == [.subscription("Empty"), .finished])
    Empty(completeImmediately: false).subscribe(subscriber)
    #expect(subscriber.history.take() == [.subscription("Empty")])
    #expect(Empty<Int, Never>() != Empty<Int, Never>(completeImmediately: false))
  }
}

@Suite struct FailTests {
  @Test func failsAtOnce() {
    let subscriber = TrackingSubscriber<Int, Oops>()
    Fail(outputType: Int.self, failure: Oops(number: 2)).subscribe(subscriber)
    #expect(subscriber.history.events == [.subscription("Empty"), .failed(Oops(number: 2))])
    #expect(Fail<Int, Oops>(error: Oops(number: 2)) == Fail(error: Oops(number: 2)))
  }
}

@Suite struct DeferredTests {
  @Test func makesAPublisherForEachSubscriber() {
    var count = 0
    let publisher = Deferred {
      count += 1
      return Just(count)
    }
    #expect(count == 0)
    let subscriber = TrackingSubscriber<Int, Never>(.max(1))
    publisher.subscribe(subscriber)
    publisher.subscribe(subscriber)
    #expect(
      subscriber.history.events == [
        .subscription("Just"), .value(1), .finished, .subscription("Just"), .value(2), .finished,
      ])
  }
}
