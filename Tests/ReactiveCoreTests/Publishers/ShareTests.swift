import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct ShareTests {
  @Test func subscribesUpstreamOnce() {
    let source = ManualPublisher<Int, Oops>()
    let shared = source.share()
    let first = TrackingSubscriber<Int, Oops>(.unlimited)
    let second = TrackingSubscriber<Int, Oops>(.unlimited)
    shared.subscribe(first)
    source.send(1)
    shared.subscribe(second)
    source.send(2)
    source.send(completion: .failure(Oops(number: 1)))
    let late = TrackingSubscriber<Int, Oops>(.unlimited)
    shared.subscribe(late)
    #expect(source.history.events == [.requested(.unlimited)])
    #expect(
      first.history.events == [
        .subscription("Multicast"), .value(1), .value(2), .failed(Oops(number: 1)),
      ])
    #expect(second.history.events == [.subscription("Multicast"), .value(2), .failed(Oops(number: 1))])
    #expect(late.history.events == [.subscription("Multicast"), .failed(Oops(number: 1))])
  }

  @Test func isEqualToItselfAlone() {
    let shared = Just(1).share()
    #expect(shared == shared)
    #expect(shared != Just(1).share())
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.share() }
  }
}
