import ReactiveCore
import ReactiveTestSupport
import Testing

/// Actions of a subscriber towards any operator: request too much, cancel at once, never request, or send to its own source.
///
/// The operators are those that pass values on as they are, so that one oracle serves all.
struct HostileUseTests {
  typealias Source = AnyPublisher<Int, Never>

  /// An operator that passes every value on, perhaps some time later.
  struct Subject: CustomTestStringConvertible, Sendable {
    let testDescription: String
    /// Whether the operator loses values that aren't requested when they arrive.
    var missesValues = false
    let apply: @Sendable (Source) -> Source

    init<P: Publisher & SendableMetatype>(
      _ name: String, missesValues: Bool = false, _ apply: @escaping @Sendable (Source) -> P
    )
    where P.Output == Int, P.Failure == Never {
      testDescription = name
      self.missesValues = missesValues
      self.apply = { AnyPublisher(apply($0)) }
    }

    static let silent = Empty<Int, Never>(completeImmediately: false)

    static let all = [
      Subject("allow all") { $0.filter { _ in true } },
      Subject("append") { $0.append(Empty<Int, Never>()) },
      Subject("buffer, kept full") { $0.buffer(size: 8, prefetch: .keepFull, whenFull: .dropNewest) },
      Subject("buffer, by request") { $0.buffer(size: 99, prefetch: .byRequest, whenFull: .dropOldest) },
      Subject("catch") { $0.setFailureType(to: Oops.self).catch { _ in silent } },
      Subject("collect") { $0.collect(1).map { $0[0] } },
      Subject("combineLatest") { Just(0).combineLatest($0) { _, second in second } },
      Subject("compactMap") { $0.compactMap { Optional($0) } },
      Subject("drop") { $0.dropFirst(0) },
      Subject("drop until") { $0.drop(untilOutputFrom: Just(0)) },
      Subject("drop while") { $0.drop { _ in false } },
      Subject("flatMap") { $0.flatMap { Just($0) } },
      Subject("flatMap one by one") { $0.flatMap(maxPublishers: .max(1)) { Just($0) } },
      Subject("handleEvents") { $0.handleEvents(receiveOutput: { _ in }) },
      Subject("map") { $0.map { $0 } },
      Subject("measureInterval") { upstream in
        upstream.measureInterval(using: ImmediateScheduler.shared).zip(upstream) { _, value in value }
      },
      Subject("merge") { $0.merge(with: Empty<Int, Never>()) },
      Subject("multicast", missesValues: true) {
        $0.multicast(subject: PassthroughSubject()).autoconnect()
      },
      Subject("output") { $0.output(in: 0...) },
      Subject("prefix until") { $0.prefix(untilOutputFrom: silent) },
      Subject("prepend") { $0.prepend(Empty<Int, Never>()) },
      Subject("receive on") { $0.receive(on: ImmediateScheduler.shared) },
      Subject("removeDuplicates") { $0.removeDuplicates() },
      Subject("replaceEmpty") { $0.replaceEmpty(with: -1) },
      Subject("replaceError") { $0.setFailureType(to: Oops.self).replaceError(with: -1) },
      Subject("retry") { $0.retry(3) },
      Subject("scan") { $0.scan(0) { $1 } },
      Subject("share", missesValues: true) { $0.share() },
      Subject("subscribe on") { $0.subscribe(on: ImmediateScheduler.shared) },
      Subject("switchToLatest", missesValues: true) { $0.map { Just($0) }.switchToLatest() },
      Subject("tryMap") { $0.tryMap { $0 }.assertNoFailure() },
      Subject("delay") { $0.delay(for: 0, scheduler: ImmediateScheduler.shared) },
      Subject("zip") { $0.zip((1...5_000).publisher) { first, _ in first } },
    ]
  }

  /// Twice the greatest demand, then unlimited, from everywhere: no value is lost, and no count overflows.
  @Test(arguments: Subject.all)
  func demandBeyondAllMeasureAddsUp(subject: Subject) {
    let subscriber = TrackingSubscriber<Int, Never>(.max(.max), perValue: .max(.max))
    subscriber.onSubscription = { $0.request(.max(.max)) }
    subscriber.onValue = { [unowned subscriber] _ in subscriber.subscription?.request(.max(.max - 1)) }
    subscriber.onCompletion = { [unowned subscriber] in subscriber.subscription?.request(.unlimited) }
    subject.apply(AnyPublisher((1...5).publisher)).subscribe(subscriber)
    #expect(subscriber.history.events.dropFirst().prefix(5) == (1...5).map { .value($0) }[...])
    subscriber.subscription?.request(.unlimited)
    subscriber.subscription?.cancel()
  }

  @Test(arguments: Subject.all)
  func aSubscriberThatNeverAsksGetsNoValue(subject: Subject) {
    let source = PassthroughSubject<Int, Never>()
    let subscriber = TrackingSubscriber<Int, Never>()
    subject.apply(AnyPublisher(source)).subscribe(subscriber)
    for number in 1...20 { source.send(number) }
    source.send(completion: .finished)
    let events = subscriber.history.events
    #expect(events.count { if case .value = $0 { true } else { false } } == 0)
    #expect(events.count { if case .subscription = $0 { true } else { false } } == 1)
  }

  @Test(arguments: Subject.all)
  func cancellingAtOnceLeavesNothingBehind(subject: Subject) {
    var (subscriptions, cancellations) = (0, 0)
    var isReleased = false
    let source = PassthroughSubject<Int, Never>()
    do {
      let subscriber = TrackingSubscriber<Int, Never>(.unlimited)
      subscriber.onDeinit = { isReleased = true }
      subscriber.onSubscription = { $0.cancel() }
      let upstream = source.handleEvents(
        receiveSubscription: { _ in subscriptions += 1 }, receiveCancel: { cancellations += 1 })
      subject.apply(AnyPublisher(upstream)).subscribe(subscriber)
      for number in 1...3 { source.send(number) }
      source.send(completion: .finished)
      let events = subscriber.history.events
      #expect(events.count == 1, "nothing but the subscription")
    }
    #expect(isReleased)
    #expect(cancellations == subscriptions)
  }

  @Test(arguments: Subject.all, [Subscribers.Demand.unlimited, .max(1)])
  func aSubjectThatFeedsItselfDoesNotNest(subject: Subject, demand: Subscribers.Demand) async {
    let (values, deepest) = await onSmallStack { () -> (Int, Int) in
      let source = PassthroughSubject<Int, Never>()
      let subscriber = TrackingSubscriber<Int, Never>(demand, perValue: .max(1))
      var (count, depth, deepest) = (0, 0, 0)
      subscriber.onValue = { number in
        depth += 1
        deepest = max(deepest, depth)
        count += 1
        if number < 3_000 { source.send(number + 1) }
        depth -= 1
      }
      subject.apply(AnyPublisher(source)).subscribe(subscriber)
      source.send(1)
      subscriber.subscription?.cancel()
      return (count, deepest)
    }
    #expect(values == 3_000)
    #expect(deepest == 1)
  }

  /// Cancelling from within the third value ends the stream, on any thread that delivers.
  @Test(arguments: Subject.all, [Subscribers.Demand.unlimited, .max(1)])
  func cancellingWithinAValueIsTheLastThingHeard(subject: Subject, demand: Subscribers.Demand) {
    let subscriber = TrackingSubscriber<Int, Never>(demand, perValue: .max(1))
    subscriber.onValue = { [unowned subscriber] in if $0 == 3 { subscriber.subscription?.cancel() } }
    subject.apply(AnyPublisher((1...9).publisher)).subscribe(subscriber)
    subscriber.subscription?.request(.unlimited)
    #expect(subscriber.history.events.dropFirst() == [.value(1), .value(2), .value(3)])
  }

  @Test(arguments: Subject.all.filter { !$0.missesValues })
  func askingForOneAtATimeGetsAll(subject: Subject) {
    let subscriber = TrackingSubscriber<Int, Never>(.max(1))
    subject.apply(AnyPublisher((1...50).publisher)).subscribe(subscriber)
    for number in 1...50 {
      #expect(
        subscriber.history.events.count { if case .value = $0 { true } else { false } } == number)
      subscriber.subscription?.request(.max(1))
    }
    subscriber.subscription?.request(.max(1))
    #expect(subscriber.history.events.dropFirst() == (1...50).map { .value($0) } + [.finished])
  }
}
