import ReactiveCore
import ReactiveTestSupport
import Testing

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
