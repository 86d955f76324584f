import ReactiveCore
import ReactiveTestSupport
import Testing

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

  @Test func aNilIsAValueWhereErrorsAreReplaced() {
    let subscriber = TrackingSubscriber<Int?, Never>(.unlimited)
    Result<Int?, Oops>.success(nil).publisher.replaceError(with: 1).subscribe(subscriber)
    #expect(subscriber.history.events.dropFirst() == [.value(Int?.none), .finished])
  }
}
