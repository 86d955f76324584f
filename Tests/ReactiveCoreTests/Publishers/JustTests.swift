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
