import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct MulticastTests {
  @Test func deliversOnceConnected() {
    let source = ManualPublisher<Int, Oops>()
    let multicast = source.multicast(subject: PassthroughSubject())
    let first = TrackingSubscriber<Int, Oops>(.unlimited)
    let second = TrackingSubscriber<Int, Oops>(.max(1))
    multicast.subscribe(first)
    multicast.subscribe(second)
    #expect(source.history.take() == [])
    let connection = multicast.connect()
    #expect(source.history.take() == [.requested(.unlimited)])
    source.send(1)
    source.send(2)
    #expect(first.history.take() == [.subscription("Multicast"), .value(1), .value(2)])
    #expect(second.history.take() == [.subscription("Multicast"), .value(1)])
    connection.cancel()
    source.send(3)
    #expect(first.history.take() == [])
    #expect(source.history.take() == [.cancelled])
  }

  @Test func requestsWhatIsReturnedForAValue() {
    let subject = ManualSubject()
    let multicast = PassthroughSubject<Int, Oops>().multicast(subject: subject)
    let subscriber = TrackingSubscriber<Int, Oops>(.max(1), perValue: .max(4))
    multicast.subscribe(subscriber)
    #expect(subject.source.send(1) == .none)
    #expect(subject.source.history.take() == [.requested(.max(1)), .requested(.max(4))])
    subscriber.subscription?.cancel()
    subject.source.send(2)
    #expect(subject.source.history.take() == [.cancelled])
  }

  @Test func makesItsSubjectOnceWhenItIsNeeded() {
    var count = 0
    let multicast = PassthroughSubject<Int, Never>().multicast {
      count += 1
      return PassthroughSubject<Int, Never>()
    }
    #expect(count == 0)
    let subscriptions = (0..<3).map { _ in multicast.sink { _ in } }
    #expect(count == 1)
    withExtendedLifetime(subscriptions) {}
  }

  /// A subject that is fed and asked by the test.
  final class ManualSubject: Subject {
    typealias Output = Int
    typealias Failure = Oops
    let source = ManualPublisher<Int, Oops>()
    func send(_ value: Int) { source.send(value) }
    func send(completion: Subscribers.Completion<Oops>) { source.send(completion: completion) }
    func send(subscription: any Subscription) { subscription.request(.unlimited) }
    func receive<S: Subscriber>(subscriber: S) where S.Input == Int, S.Failure == Oops {
      source.subscribe(subscriber)
    }
  }
}

@Suite struct AutoconnectTests {
  @Test func connectsForTheFirstAndDisconnectsAfterTheLast() {
    let source = ManualPublisher<Int, Oops>()
    let shared = source.multicast(subject: PassthroughSubject()).autoconnect()
    let first = TrackingSubscriber<Int, Oops>(.unlimited)
    let second = TrackingSubscriber<Int, Oops>(.unlimited)
    shared.subscribe(first)
    shared.subscribe(second)
    #expect(source.history.take() == [.requested(.unlimited)])
    #expect(first.history.take() == [.subscription("Multicast")])
    first.subscription?.cancel()
    first.subscription?.cancel()
    #expect(source.history.take() == [])
    second.subscription?.cancel()
    #expect(source.history.take() == [.cancelled])
    shared.subscribe(first)
    #expect(source.history.take() == [.requested(.unlimited)])
  }

  @Test func disconnectsIfTheFirstCancelsWhileConnecting() {
    let source = ManualPublisher<Int, Oops>()
    let shared = source.multicast(subject: PassthroughSubject()).autoconnect()
    let subscriber = TrackingSubscriber<Int, Oops>(.unlimited)
    source.onRequest = { _ in subscriber.subscription?.cancel() }
    shared.subscribe(subscriber)
    #expect(source.history.take() == [.requested(.unlimited), .cancelled])
  }
}

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
