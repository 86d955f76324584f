import CombineExtras
import PortableCombine
import ReactiveTestSupport
import Testing

@Suite struct EffectTests {
  typealias Sut = Effect<Int, Oops>
  typealias Tracker = TrackingSubscriber<Int, Oops>

  let scope = EffectScope()

  @discardableResult
  func run(_ effect: Sut, in other: EffectScope? = nil) -> Tracker {
    let tracker = Tracker(.unlimited)
    effect.publisher(in: other ?? scope).subscribe(tracker)
    return tracker
  }

  /// The received calls, without the subscription.
  func events(_ tracker: Tracker) -> [Happening] {
    tracker.history.events.filter { if case .subscription = $0 { false } else { true } }
  }

  @Test func worksWhenItIsRunAndEachTimeItIs() {
    var work = 0
    let effects: [Sut] = [
      .fireAndForget { work += 1 },
      .sync {
        work += 1
        return work
      },
      .future { promise in
        work += 1
        promise(.success(work))
      },
    ]
    #expect(work == 0)
    #expect(events(run(effects[0])) == [.finished])
    #expect(events(run(effects[1])) == [.value(2), .finished])
    #expect(events(run(effects[2])) == [.value(3), .finished])
    #expect(events(run(effects[2])) == [.value(4), .finished])
    #expect(events(run(.none)) == [.finished])
    #expect(work == 4)
  }

  @Test func aFutureMayFail() {
    #expect(events(run(.future { $0(.failure(Oops(number: 3))) })) == [.failed(Oops(number: 3))])
  }

  @Test func isThePublisherItWasMadeOf() {
    let source = ManualPublisher<Int, Oops>()
    let tracker = Tracker(.max(2))
    source.eraseToEffect().eraseToEffect().subscribe(tracker)
    source.send(1)
    tracker.subscription?.cancel()
    #expect(source.history.take() == [.requested(.max(2)), .cancelled])
    #expect(events(tracker) == [.value(1)])
  }

  @Test func mapsItsValues() {
    #expect(events(run(Sut.sync { 4 }.map { $0 * 2 })) == [.value(8), .finished])
  }

  @Test func mergedEffectsRunAtTheSameTime() {
    let sources = [ManualPublisher<Int, Oops>(), ManualPublisher<Int, Oops>()]
    let tracker = run(.merge(sources[0].eraseToEffect(), sources[1].eraseToEffect()))
    sources[1].send(1)
    sources[0].send(2)
    sources[0].send(completion: .finished)
    sources[1].send(3)
    sources[1].send(completion: .finished)
    #expect(events(tracker) == [.value(1), .value(2), .value(3), .finished])
  }

  @Test func concatenatedEffectsRunOneAfterTheOther() {
    let sources = [ManualPublisher<Int, Oops>(), ManualPublisher<Int, Oops>()]
    let tracker = run(.concatenate(sources[0].eraseToEffect(), sources[1].eraseToEffect()))
    #expect(sources[1].subscriber == nil)
    sources[0].send(1)
    sources[0].send(completion: .finished)
    sources[1].send(2)
    sources[1].send(completion: .failure(Oops(number: 5)))
    #expect(events(tracker) == [.value(1), .value(2), .failed(Oops(number: 5))])
  }
}

/// Effects with ids.
@Suite struct CancellableEffectTests {
  typealias Source = ManualPublisher<Int, Oops>
  typealias Sut = Effect<Int, Oops>

  let base = EffectTests()
  var scope: EffectScope { base.scope }

  @Test func isOrderly() {
    expectOrderlyStream(named: "CancellableEffect") { $0.eraseToEffect().cancellable(id: 1) }
  }

  @Test func isEndedByItsId() {
    let source = Source()
    let tracker = base.run(source.eraseToEffect().cancellable(id: "a"))
    let other = base.run(Source().eraseToEffect().cancellable(id: "b"))
    #expect(scope.isInFlight(id: "a"))
    source.send(1)
    base.run(.cancel(id: "a"))
    #expect(!scope.isInFlight(id: "a"))
    #expect(scope.isInFlight(id: "b"))
    source.send(2)
    source.send(completion: .finished)
    #expect(source.history.take() == [.requested(.unlimited), .cancelled])
    #expect(base.events(tracker) == [.value(1), .finished])
    #expect(base.events(other) == [])
  }

  @Test func allWithTheIdAreEndedInTheOrderInWhichTheyBegan() {
    let history = History()
    for number in 0..<20 {
      let tracker = base.run(Source().eraseToEffect().cancellable(id: "a"))
      tracker.onCompletion = { history.append(.value(number)) }
    }
    scope.cancel(id: "a")
    #expect(history.take() == (0..<20).map { .value($0) })
  }

  @Test func idsAreOfOneScope() {
    let mine = base.run(Source().eraseToEffect().cancellable(id: 1))
    let other = EffectScope()
    let others = base.run(Source().eraseToEffect().cancellable(id: 1), in: other)
    base.run(.cancel(id: 1), in: other)
    #expect(base.events(mine) == [])
    #expect(base.events(others) == [.finished])
  }

  @Test func endsThoseInFlightIfToldTo() {
    let first = Source()
    let second = Source()
    let third = Source()
    let trackers = [
      base.run(first.eraseToEffect().cancellable(id: 1)), base.run(second.eraseToEffect().cancellable(id: 1)),
    ]
    #expect(first.history.take() == [.requested(.unlimited)])
    let last = base.run(third.eraseToEffect().cancellable(id: 1, cancelInFlight: true))
    #expect(first.history.take() == [.cancelled])
    for tracker in trackers { #expect(base.events(tracker) == [.finished]) }
    third.send(4)
    #expect(base.events(last) == [.value(4)])
  }

  @Test func isForgottenAtTheEnd() {
    for end in End.allCases {
      let source = Source()
      let tracker = base.run(source.eraseToEffect().cancellable(id: 1))
      #expect(scope.isInFlight(id: 1))
      switch end {
      case .finish: source.send(completion: .finished)
      case .failure: source.send(completion: .failure(Oops()))
      case .cancel: tracker.subscription?.cancel()
      }
      #expect(!scope.isInFlight(id: 1))
    }
    base.run(Sut.sync { 1 }.cancellable(id: 1))
    #expect(!scope.isInFlight(id: 1))
  }

  @Test func endedFromWithinAValueItFinishesAfterTheValue() {
    let source = Source()
    let tracker = base.run(source.eraseToEffect().cancellable(id: 1))
    let events = History()
    tracker.onValue = { [scope] _ in
      scope.cancel(id: 1)
      events.append(.cancelled)
    }
    tracker.onCompletion = { events.append(.finished) }
    source.send(1)
    source.send(2)
    #expect(events.take() == [.cancelled, .finished])
    #expect(base.events(tracker) == [.value(1), .finished])
  }

  @Test func endedBeforeItsSourceHasAnsweredItFinishesAndCancelsTheSourceThen() {
    let source = Source()
    source.subscribesAtOnce = false
    let tracker = base.run(source.eraseToEffect().cancellable(id: 1))
    scope.cancel(id: 1)
    #expect(tracker.history.take() == [.subscription("Empty"), .finished])
    source.sendSubscription()
    #expect(source.history.take() == [.cancelled])
  }

  @Test func composedEffectsHandOnTheirScope() {
    let sources = (0..<4).map { _ in Source() }
    func effect(_ index: Int) -> Sut { sources[index].eraseToEffect().cancellable(id: index) }
    base.run(effect(0).map { $0 + 1 })
    base.run(.merge(effect(1), .concatenate(effect(2), .none)))
    base.run(effect(3).cancellable(id: "outer"))
    for index in 0..<4 {
      #expect(scope.isInFlight(id: index))
      scope.cancel(id: index)
      #expect(sources[index].history.take() == [.requested(.unlimited), .cancelled])
    }
    #expect(!scope.isInFlight(id: "outer"))
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.eraseToEffect().cancellable(id: 1) }
    weak var weakTracker: TrackingSubscriber<Int, Oops>?
    var kept: (any Subscription)?
    do {
      let source = Source()
      let tracker = base.run(source.eraseToEffect().cancellable(id: 1))
      weakTracker = tracker
      kept = tracker.subscription
      scope.cancel(id: 1)
    }
    #expect(weakTracker == nil)
    withExtendedLifetime(kept) {}
  }
}

/// Effects that wait for a pause.
@Suite struct DebouncedEffectTests {
  let base = EffectTests()
  let scheduler = ManualScheduler()

  func debounced(_ number: Int) -> Effect<Int, Oops> {
    .sync { number }.debounce(id: "d", for: .milliseconds(10), scheduler: scheduler)
  }

  @Test func runsAfterTheTimeWithoutAnother() {
    let first = base.run(debounced(1))
    scheduler.advance(by: .milliseconds(9))
    let second = base.run(debounced(2))
    #expect(base.events(first) == [.finished])
    scheduler.advance(by: .milliseconds(9))
    #expect(base.events(second) == [])
    scheduler.advance(by: .milliseconds(1))
    #expect(base.events(first) == [.finished])
    #expect(base.events(second) == [.value(2), .finished])
    #expect(scheduler.pending == 0)
  }

  @Test func isEndedByItsIdWhileItWaits() {
    let tracker = base.run(debounced(1))
    base.run(.cancel(id: "d"))
    scheduler.advance(by: .milliseconds(20))
    #expect(base.events(tracker) == [.finished])
  }

  @Test func isEndedByItsIdWhileItRuns() {
    let source = ManualPublisher<Int, Oops>()
    let tracker = base.run(
      source.eraseToEffect().debounce(id: "d", for: .milliseconds(10), scheduler: scheduler))
    #expect(source.subscriber == nil)
    scheduler.advance(by: .milliseconds(10))
    source.send(1)
    base.run(.cancel(id: "d"))
    #expect(source.history.take() == [.requested(.unlimited), .cancelled])
    #expect(base.events(tracker) == [.value(1), .finished])
  }
}
