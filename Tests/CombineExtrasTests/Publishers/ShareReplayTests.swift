import CombineExtras
import Dispatch
import PortableCombine
import ReactiveTestSupport
import Synchronization
import Testing

@Suite struct ShareReplayTests {
  typealias Source = ManualPublisher<Int, Oops>
  typealias Tracker = TrackingSubscriber<Int, Oops>

  let name = Happening.subscription("ReplaySubject")

  @Test func theExampleDoesWhatItSays() {
    var loads = 0
    func loadSettings() -> AnyPublisher<String, Never> {
      Deferred { () -> Just<String> in
        loads += 1
        return Just("dark")
      }.eraseToAnyPublisher()
    }
    var printed: [String] = []
    let settings = loadSettings().share(replay: 1, scope: .forever)
    let first = settings.sink { printed.append("loaded \($0)") }
    let second = settings.sink { printed.append("replayed \($0)") }
    #expect(printed == ["loaded dark", "replayed dark"])
    #expect(loads == 1)
    withExtendedLifetime((first, second)) {}
  }

  @Test(arguments: [Publishers.ReplayScope.forever, .whileConnected])
  func subscribesOnceAndReplaysToLatecomers(scope: Publishers.ReplayScope) {
    let source = Source()
    let shared = source.share(replay: 2, scope: scope)
    #expect(source.history.take() == [])
    let first = Tracker(.unlimited)
    shared.subscribe(first)
    for number in 1...3 { source.send(number) }
    let second = Tracker(.max(1))
    shared.subscribe(second)
    source.send(4)
    #expect(source.history.take() == [.requested(.unlimited)])
    #expect(first.history.take() == [name, .value(1), .value(2), .value(3), .value(4)])
    #expect(second.history.take() == [name, .value(2)])
    source.send(completion: .failure(Oops(number: 1)))
    #expect(first.history.take() == [.failed(Oops(number: 1))])
    #expect(second.history.take() == [])
    second.subscription?.request(.unlimited)
    #expect(second.history.take() == [.value(3), .value(4), .failed(Oops(number: 1))])
  }

  @Test func foreverOutlivesItsSubscribersAndReplaysTheCompletion() {
    let source = Source()
    let shared = source.share(replay: 1, scope: .forever)
    let first = Tracker(.unlimited)
    shared.subscribe(first)
    source.send(1)
    first.subscription?.cancel()
    source.send(2)
    let second = Tracker(.unlimited)
    shared.subscribe(second)
    #expect(second.history.take() == [name, .value(2)])
    source.send(completion: .finished)
    let third = Tracker(.unlimited)
    shared.subscribe(third)
    #expect(third.history.take() == [name, .value(2), .finished])
    #expect(source.history.take() == [.requested(.unlimited)])
  }

  @Test func foreverEndsWithThePublisherAndItsSubscriptions() {
    let source = Source()
    let tracker = Tracker(.unlimited)
    do {
      let shared = source.share(replay: 1, scope: .forever)
      shared.subscribe(tracker)
    }
    source.send(1)
    #expect(tracker.history.take() == [name, .value(1)])
    #expect(source.history.take() == [.requested(.unlimited)])
    tracker.subscription?.cancel()
    #expect(source.history.take() == [.cancelled])
  }

  @Test func whileConnectedStartsAnewAfterTheLastHasLeft() {
    let source = Source()
    let shared = source.share(replay: 1, scope: .whileConnected)
    let first = Tracker(.unlimited)
    let second = Tracker(.unlimited)
    shared.subscribe(first)
    shared.subscribe(second)
    source.send(1)
    first.subscription?.cancel()
    first.subscription?.cancel()
    #expect(source.history.take() == [.requested(.unlimited)])
    second.subscription?.cancel()
    #expect(source.history.take() == [.cancelled])
    let third = Tracker(.unlimited)
    shared.subscribe(third)
    #expect(source.history.take() == [.requested(.unlimited)])
    source.send(2)
    #expect(third.history.take() == [name, .value(2)])
  }

  @Test func whileConnectedStartsAnewAfterCompletion() {
    let source = Source()
    let shared = source.share(replay: 1)
    let first = Tracker()
    shared.subscribe(first)
    source.send(1)
    source.send(completion: .finished)
    let second = Tracker(.unlimited)
    shared.subscribe(second)
    #expect(source.history.take() == [.requested(.unlimited), .requested(.unlimited)])
    source.send(2)
    #expect(second.history.take() == [name, .value(2)])
    first.subscription?.request(.max(1))
    #expect(first.history.take() == [name, .value(1), .finished])
    source.send(3)
    #expect(second.history.take() == [.value(3)])
    second.subscription?.cancel()
    #expect(source.history.take() == [.cancelled])
  }

  @Test func subscribingAgainFromTheCompletionStartsAnew() {
    let source = Source()
    let shared = source.share(replay: 1)
    let first = Tracker(.unlimited)
    let second = Tracker(.unlimited)
    first.onCompletion = { shared.subscribe(second) }
    shared.subscribe(first)
    source.send(1)
    source.send(completion: .finished)
    #expect(second.history.take() == [name])
    #expect(source.history.take() == [.requested(.unlimited), .requested(.unlimited)])
  }

  @Test func doesNotSubscribeUpstreamForOneWhoCancelsAtOnce() {
    let source = Source()
    let tracker = Tracker()
    tracker.onSubscription = { $0.cancel() }
    source.share(replay: 1).subscribe(tracker)
    #expect(source.history.take() == [])
    #expect(source.subscriber == nil)
  }

  @Test func cancelsUpstreamIfTheSubscriberLeavesWhileConnecting() {
    let source = Source()
    let shared = source.share(replay: 1)
    let tracker = Tracker(.unlimited)
    source.onRequest = { _ in tracker.subscription?.cancel() }
    shared.subscribe(tracker)
    #expect(source.history.take() == [.requested(.unlimited), .cancelled])
    let late = Source()
    late.subscribesAtOnce = false
    let other = Tracker(.unlimited)
    late.share(replay: 1).subscribe(other)
    other.subscription?.cancel()
    late.sendSubscription()
    #expect(late.history.take() == [.cancelled])
  }

  @Test func aSynchronousUpstreamIsReplayedAsAskedFor() {
    let shared = (1...5).publisher.setFailureType(to: Oops.self).share(replay: 3, scope: .forever)
    let first = Tracker(.max(1))
    shared.subscribe(first)
    #expect(first.history.take() == [name, .value(1)])
    let second = Tracker(.unlimited)
    shared.subscribe(second)
    #expect(second.history.take() == [name, .value(3), .value(4), .value(5), .finished])
  }

  @Test func isEqualToItselfAlone() {
    let shared = Just(1).share(replay: 1)
    #expect(shared == shared)
    #expect(shared != Just(1).share(replay: 1))
    #expect(shared.bufferSize == 1)
    #expect(shared.scope == .whileConnected)
  }

  @Test(arguments: [Publishers.ReplayScope.forever, .whileConnected])
  func releasesEverything(scope: Publishers.ReplayScope) {
    expectEverythingReleased { $0.share(replay: 1, scope: scope) }
  }

  /// Threads subscribe and cancel at the same time. Each connection that this opens is closed again.
  @Test(arguments: [Publishers.ReplayScope.whileConnected, .forever])
  func manyThreadsMayComeAndGo(scope: Publishers.ReplayScope) {
    let source = PassthroughSubject<Int, Never>()
    let (connected, cancelled) = (Counter(), Counter())
    let shared = UncheckedBox(
      source.handleEvents(
        receiveSubscription: { _ in connected.add() }, receiveCancel: { cancelled.add() }
      ).share(replay: 2, scope: scope))
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      for _ in 0..<500 { shared.value.sink { _ in }.cancel() }
    }
    switch scope {
    case .whileConnected:
      #expect(connected.value > 0 && connected.value == cancelled.value)
    case .forever:
      #expect(connected.value == 1 && cancelled.value == 0)
    }
    var values: [Int] = []
    let subscription = shared.value.sink { values.append($0) }
    source.send(1)
    source.send(2)
    #expect(values == [1, 2])
    withExtendedLifetime(subscription) {}
  }

  final class Counter: Sendable {
    private let number = Atomic(0)
    var value: Int { number.load(ordering: .relaxed) }
    func add() { number.add(1, ordering: .relaxed) }
  }
}
