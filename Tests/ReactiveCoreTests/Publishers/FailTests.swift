import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct FailTests {
  @Test func failsAtOnce() {
    let subscriber = TrackingSubscriber<Int, Oops>()
    Fail(outputType: Int.self, failure: Oops(number: 2)).subscribe(subscriber)
    #expect(subscriber.history.events == [.subscription("Empty"), .failed(Oops(number: 2))])
    #expect(Fail<Int, Oops>(error: Oops(number: 2)) == Fail(error: Oops(number: 2)))
  }
}
