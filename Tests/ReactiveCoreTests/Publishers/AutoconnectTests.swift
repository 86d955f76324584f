import ReactiveCore
import ReactiveTestSupport
import Testing

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

  @Test func theSubscriptionPassesForThatOfTheSource() {
    var identifiers: [CombineIdentifier] = []
    let subscriber = TrackingSubscriber<Int, Oops>()
    subscriber.onSubscription = { identifiers.append($0.combineIdentifier) }
    let plain = Plain()
    plain.autoconnect().subscribe(subscriber)
    #expect(identifiers == [plain.subscription.combineIdentifier])
  }

  /// A connectable publisher whose subscription the test can access.
  final class Plain: ConnectablePublisher {
    typealias Output = Int
    typealias Failure = Oops
    let subscription = ManualSubscription()
    func receive<S: Subscriber>(subscriber: S) where S.Input == Int, S.Failure == Oops {
      subscriber.receive(subscription: subscription)
    }
    func connect() -> any Cancellable { AnyCancellable {} }
  }

  @Test func passesEverythingOn() {
    for end in [End.finish, .failure] {
      let source = ManualPublisher<Int, Oops>()
      let shared = source.multicast(subject: PassthroughSubject()).autoconnect()
      let subscriber = TrackingSubscriber<Int, Oops>(.max(1), perValue: .max(1))
      shared.subscribe(subscriber)
      source.send(1)
      source.send(2)
      source.send(completion: end == .finish ? .finished : .failure(Oops(number: 7)))
      #expect(
        subscriber.history.events == [
          .subscription("Multicast"), .value(1), .value(2),
          end == .finish ? .finished : .failed(Oops(number: 7)),
        ])
    }
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.multicast(subject: PassthroughSubject()).autoconnect() }
  }

  @Test func showsItselfAndDownstreamInTheMirrorOfItsSubscriber() {
    let source = ManualPublisher<Int, Oops>()
    let autoconnect = Unconnected(source: source).autoconnect()
    autoconnect.subscribe(TrackingSubscriber<Int, Oops>())
    let children = source.subscriber?.customMirror.children.map { $0 } ?? []
    #expect(children.map(\.label) == ["parent", "downstream"])
    #expect(children.first?.value as AnyObject === autoconnect)
  }

  /// A connectable publisher that shows a test its subscriber.
  struct Unconnected: ConnectablePublisher {
    typealias Output = Int
    typealias Failure = Oops
    let source: ManualPublisher<Int, Oops>
    func receive<S: Subscriber>(subscriber: S) where S.Input == Int, S.Failure == Oops {
      source.subscribe(subscriber)
    }
    func connect() -> any Cancellable { AnyCancellable {} }
  }

  @Test func aSourceMayDeliverEverythingWhileItIsConnected() {
    let subscriber = TrackingSubscriber<Int, Never>(.unlimited)
    (1...2).publisher.makeConnectable().autoconnect().subscribe(subscriber)
    #expect(subscriber.history.events == [.subscription("Multicast"), .value(1), .value(2), .finished])
  }
}
