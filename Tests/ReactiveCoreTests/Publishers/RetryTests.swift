import ReactiveCore
import ReactiveTestSupport
import Synchronization
import Testing

@Suite struct RetryTests {
  @Test func asksAgainForWhatIsOutstanding() {
    let rig = Rig(demand: .max(5)) { $0.retry(2) }
    #expect(rig.take() == [.subscription("Retry"), .requested(.max(5))])
    for number in 1...2 {
      #expect(rig.source.send(number) == .none)
      rig.source.send(completion: .failure(Oops(number: number)))
    }
    #expect(rig.take() == [.value(1), .requested(.max(4)), .value(2), .requested(.max(3))])
    rig.source.send(3)
    rig.source.send(completion: .failure(Oops(number: 3)))
    rig.source.send(4)
    rig.source.send(completion: .failure(Oops(number: 4)))
    rig.subscription.request(.max(1))
    rig.subscription.cancel()
    #expect(rig.take() == [.value(3), .failed(Oops(number: 3))])
  }

  @Test func zeroRetriesAreNone() {
    let rig = Rig { $0.retry(0) }
    rig.source.send(completion: .failure(Oops(number: 1)))
    #expect(rig.take() == [.subscription("Retry"), .requested(.unlimited), .failed(Oops(number: 1))])
  }

  @Test(arguments: [nil, -1]) func withoutANumberItRetriesForever(retries: Int?) {
    let rig = Rig(demand: .max(1)) { Publishers.Retry(upstream: $0, retries: retries) }
    for _ in 0..<1000 { rig.source.send(completion: .failure(Oops())) }
    rig.source.send(1)
    rig.source.send(completion: .finished)
    let requests = Array(repeating: Happening.requested(.max(1)), count: 1001)
    #expect(rig.take() == [.subscription("Retry")] + requests + [.value(1), .finished])
  }

  @Test func requestsWhatTheSubscriberReturns() {
    let rig = Rig(demand: .max(1), perValue: .max(2)) { $0.retry(1) }
    #expect(rig.source.send(1) == .none)
    #expect(
      rig.take() == [.subscription("Retry"), .requested(.max(1)), .value(1), .requested(.max(2))])
  }

  @Test func aFinishPassesAtAnyAttempt() {
    let rig = Rig { $0.retry(3) }
    rig.source.send(completion: .failure(Oops()))
    rig.source.send(completion: .finished)
    rig.source.send(completion: .failure(Oops()))
    #expect(
      rig.take() == [
        .subscription("Retry"), .requested(.unlimited), .requested(.unlimited), .finished,
      ])
  }

  @Test func cancellationPassesAndStopsTheRetries() {
    let rig = Rig(demand: nil) { $0.retry(3) }
    rig.subscription.cancel()
    rig.subscription.cancel()
    rig.source.send(1)
    rig.source.send(completion: .failure(Oops()))
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.subscription("Retry"), .cancelled])
  }

  @Test func aSecondSubscriptionIsCancelled() {
    let rig = Rig(demand: nil) { $0.retry(3) }
    rig.source.sendSubscription()
    #expect(rig.take() == [.subscription("Retry"), .cancelled])
  }

  @Test func requestsBetweenAttemptsWaitForTheNext() {
    let rig = Rig(demand: .max(1)) { $0.retry(3) }
    rig.source.subscribesAtOnce = false
    rig.source.send(completion: .failure(Oops()))
    rig.subscription.request(.max(2))
    rig.source.sendSubscription()
    #expect(rig.take() == [.subscription("Retry"), .requested(.max(1)), .requested(.max(3))])
  }

  @Test func aMillionRetriesNeedNoMoreStackThanOne() {
    var count = 0
    let source = Deferred {
      count += 1
      return Fail<Int, Oops>(error: Oops(number: count))
    }
    let subscriber = TrackingSubscriber<Int, Oops>(.max(1))
    source.retry(1_000_000).subscribe(subscriber)
    #expect(count == 1_000_001)
    #expect(subscriber.history.events == [.subscription("Retry"), .failed(Oops(number: 1_000_001))])
  }

  @Test func valuesOfManyAttemptsNeedNoMoreStackThanOne() {
    let source = Deferred { Just(1).tryMap { _ in throw Oops() }.prepending(7) }
    var sum = 0
    let subscription = source.retry(20_000).sink(receiveCompletion: { _ in }) { sum += $0 }
    #expect(sum == 7 * 20_001)
    subscription.cancel()
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.retry(0) }
    for end in [Subscribers.Completion<Oops>.finished, .failure(Oops())] {
      var released = 0
      do {
        let rig = Rig { $0.retry(1) }
        rig.subscriber.onDeinit = { released += 1 }
        rig.source.onDeinit = { released += 1 }
        rig.source.send(completion: .failure(Oops()))
        rig.source.send(completion: end)
        rig.source.forget()
      }
      #expect(released == 2)
    }
  }

  @Test func requestsMayRaceWithFailures() async {
    for _ in 0..<100 {
      let source = UncheckedBox(PassthroughRelay())
      let subscriber = UncheckedBox(TrackingSubscriber<Int, Oops>())
      source.value.retry(-1).subscribe(subscriber.value)
      let subscription = UncheckedBox(subscriber.value.subscription!)
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<2 {
          group.addTask { for _ in 0..<100 { subscription.value.request(.max(1)) } }
        }
        group.addTask { for _ in 0..<50 { source.value.fail() } }
      }
      source.value.fail()
      #expect(source.value.lastRequested == 200)
    }
  }

  @Test func isEqualWhenItsPartsAre() {
    #expect(Fail<Int, Oops>(error: Oops()).retry(1) == Fail<Int, Oops>(error: Oops()).retry(1))
    #expect(Fail<Int, Oops>(error: Oops()).retry(1) != Fail<Int, Oops>(error: Oops()).retry(2))
  }
}

extension Publisher {
  /// Prepends one value to this publisher.
  fileprivate func prepending(_ value: Output) -> AnyPublisher<Output, any Error>
  where Failure == any Error {
    let upstream = self
    return (0..<2).publisher.setFailureType(to: (any Error).self)
      .flatMap(maxPublishers: .max(1)) { index in
        index == 0
          ? AnyPublisher(Result<Output, any Error>.success(value).publisher) : AnyPublisher(upstream)
      }
      .eraseToAnyPublisher()
  }
}

/// Adds up the demand of the current attempt. Fails on command, from one thread.
private final class PassthroughRelay: Publisher {
  typealias Output = Int
  typealias Failure = Oops

  private let sum = AttemptSum()
  private var subscriber: AnySubscriber<Int, Oops>?

  var lastRequested: Int { sum.value }

  func receive<S: Subscriber>(subscriber: S) where S.Input == Int, S.Failure == Oops {
    self.subscriber = AnySubscriber(subscriber)
    let attempt = sum.restart()
    subscriber.receive(
      subscription: ManualSubscription(onRequest: { [sum] in sum.add($0.max ?? 0, attempt: attempt) }))
  }

  func fail() {
    subscriber?.receive(completion: .failure(Oops()))
  }
}

private final class AttemptSum: Sendable {
  private let state = Mutex((attempt: 0, sum: 0))

  var value: Int { state.withLock { $0.sum } }

  func restart() -> Int {
    state.withLock { state in
      state = (state.attempt + 1, 0)
      return state.attempt
    }
  }

  func add(_ count: Int, attempt: Int) {
    state.withLock { if $0.attempt == attempt { $0.sum += count } }
  }

  @Test func withstandsReentrancy() {
    expectStreamWithstandsReentrancy(named: "Retry") { $0.retry(0) }
  }
}
