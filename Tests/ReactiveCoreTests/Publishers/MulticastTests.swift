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

  /// A subject through which the test sends and requests.
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

  @Test func completionsReachAllAndThoseWhoComeLater() {
    for end in [End.finish, .failure] {
      let source = ManualPublisher<Int, Oops>()
      let multicast = source.multicast { PassthroughSubject<Int, Oops>() }
      let early = TrackingSubscriber<Int, Oops>(.unlimited)
      multicast.subscribe(early)
      let connection = multicast.connect()
      source.send(1)
      source.send(completion: end == .finish ? .finished : .failure(Oops(number: 1)))
      let late = TrackingSubscriber<Int, Oops>(.unlimited)
      multicast.subscribe(late)
      let last = end == .finish ? Happening.finished : .failed(Oops(number: 1))
      #expect(early.history.events == [.subscription("Multicast"), .value(1), last])
      #expect(late.history.events == [.subscription("Multicast"), last])
      connection.cancel()
    }
  }

  @Test func connectingTwiceSubscribesTwice() {
    let upstream = PassthroughSubject<Int, Never>()
    let multicast = upstream.multicast(subject: PassthroughSubject())
    var values: [Int] = []
    let subscription = multicast.sink { values.append($0) }
    let connections = [multicast.connect(), multicast.connect()]
    upstream.send(1)
    #expect(values == [1, 1])
    withExtendedLifetime((subscription, connections)) {}
  }

  @Test func releasesItsSubscribers() {
    for end in End.allCases {
      var isReleased = false
      let source = ManualPublisher<Int, Oops>()
      let multicast = source.multicast(subject: PassthroughSubject())
      let connection = multicast.connect()
      do {
        let subscriber = TrackingSubscriber<Int, Oops>(.unlimited)
        subscriber.onDeinit = { isReleased = true }
        multicast.subscribe(subscriber)
        switch end {
        case .finish: source.send(completion: .finished)
        case .failure: source.send(completion: .failure(Oops()))
        case .cancel: subscriber.subscription?.cancel()
        }
      }
      #expect(isReleased, "after \(end)")
      withExtendedLifetime((multicast, connection)) {}
    }
  }

  @Test func cancellingWithinAValueStopsTheRest() {
    let source = ManualPublisher<Int, Oops>()
    let multicast = source.multicast(subject: PassthroughSubject())
    let subscriber = TrackingSubscriber<Int, Oops>(.unlimited)
    subscriber.onValue = { [unowned subscriber] _ in subscriber.subscription?.cancel() }
    multicast.subscribe(subscriber)
    let connection = multicast.connect()
    source.send(1)
    source.send(2)
    #expect(subscriber.history.events == [.subscription("Multicast"), .value(1)])
    connection.cancel()
  }

  @Test func ignoresWhatASubjectSendsBeforeTheSubscription() {
    let subject = ManualSubject()
    subject.source.subscribesAtOnce = false
    let multicast = PassthroughSubject<Int, Oops>().multicast(subject: subject)
    let subscriber = TrackingSubscriber<Int, Oops>(.max(1))
    multicast.subscribe(subscriber)
    #expect(subject.source.send(1) == .none)
    subject.source.send(completion: .finished)
    subject.source.sendSubscription()
    subject.source.send(2)
    #expect(
      subscriber.history.take() + subject.source.history.take() == [
        .subscription("Multicast"), .value(2), .requested(.max(1)),
      ])
    #expect(subject.source.subscriber?.customMirror.children.isEmpty == true)
    #expect(Mirror(reflecting: subscriber.subscription!).children.isEmpty)
  }

  @Test func aRequestForNothingPasses() {
    let subject = ManualSubject()
    let subscriber = TrackingSubscriber<Int, Oops>(Subscribers.Demand.none)
    PassthroughSubject<Int, Oops>().multicast(subject: subject).subscribe(subscriber)
    #expect(subject.source.history.take() == [.requested(.none)])
  }

  @Test func aSourceMayDeliverEverythingWhileItIsConnected() {
    let multicast = (1...2).publisher.multicast(subject: PassthroughSubject())
    let first = TrackingSubscriber<Int, Never>(.unlimited)
    multicast.subscribe(first)
    let connection = multicast.connect()
    let late = TrackingSubscriber<Int, Never>(.unlimited)
    multicast.subscribe(late)
    #expect(first.history.events == [.subscription("Multicast"), .value(1), .value(2), .finished])
    #expect(late.history.events == [.subscription("Multicast"), .finished])
    connection.cancel()
  }
}
