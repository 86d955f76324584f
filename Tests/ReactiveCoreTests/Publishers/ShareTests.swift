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

  @Test func keepsNothingOfTheConnectionsOfThePast() {
    /// Keeps weak references to the subscribers.
    final class Registry: Publisher {
      typealias Output = Int
      typealias Failure = Never
      struct Entry { weak var subscriber: AnyObject? }
      var entries: [Entry] = []
      func receive<S: Subscriber>(subscriber: S) where S.Input == Int, S.Failure == Never {
        entries.append(Entry(subscriber: subscriber as AnyObject))
        subscriber.receive(subscription: ManualSubscription())
      }
    }
    let registry = Registry()
    let shared = registry.share()
    for _ in 1...1_000 { shared.sink { _ in }.cancel() }
    #expect(registry.entries.count == 1_000)
    #expect(registry.entries.count { $0.subscriber != nil } < 20)
    withExtendedLifetime(shared) {}
  }

  @Test func aSourceThatDeliversAtOnceIsThroughBeforeTheSecondComes() {
    let shared = (1...2).publisher.share()
    let subscribers = [TrackingSubscriber<Int, Never>(.unlimited), TrackingSubscriber(.unlimited)]
    for subscriber in subscribers { shared.subscribe(subscriber) }
    #expect(
      subscribers[0].history.events == [.subscription("Multicast"), .value(1), .value(2), .finished])
    #expect(subscribers[1].history.events == [.subscription("Multicast"), .finished])
  }

  @Test func subscribersMaySendAndLeaveWithinAValue() {
    let source = ManualPublisher<Int, Oops>()
    let shared = source.share()
    let first = TrackingSubscriber<Int, Oops>(.unlimited)
    let second = TrackingSubscriber<Int, Oops>(.unlimited)
    first.onValue = { [unowned first] value in
      if value == 1 { source.send(2) } else { first.subscription?.cancel() }
    }
    second.onValue = { [unowned second] value in
      if value == 3 { second.subscription?.cancel() }
    }
    shared.subscribe(first)
    shared.subscribe(second)
    source.send(1)
    source.send(3)
    #expect(first.history.events == [.subscription("Multicast"), .value(1), .value(2)])
    #expect(second.history.events == [.subscription("Multicast"), .value(1), .value(2), .value(3)])
    #expect(source.history.events == [.requested(.unlimited), .cancelled])
  }
}
