import ReactiveCore
import ReactiveTestSupport
import Testing

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
