import ReactiveCore
import ReactiveTestSupport
import Testing

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
