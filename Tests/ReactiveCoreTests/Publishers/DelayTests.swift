import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct DelayTests {
  typealias Delayed = Publishers.Delay<ManualPublisher<Int, Oops>, ManualScheduler>

  let scheduler = ManualScheduler()

  func makeRig(
    demand: Subscribers.Demand? = .unlimited, perValue: Subscribers.Demand = .none
  ) -> Rig<Int, Oops, Delayed> {
    let rig = Rig(demand: demand, perValue: perValue) {
      $0.delay(for: 200, tolerance: 5, scheduler: scheduler, options: .special)
    }
    #expect(scheduler.takeCalls() == [])
    #expect(rig.take() == [.subscription("Delay")] + (demand.map { [.requested($0)] } ?? []))
    return rig
  }

  @Test func deliversValuesAndCompletionLater() {
    let rig = makeRig(demand: .max(100), perValue: .max(12))
    #expect(rig.source.send(1) == .none)
    #expect(scheduler.takeCalls() == [.once(after: 200, tolerance: 5, options: .special)])
    scheduler.advance(by: 1)
    rig.source.send(2)
    scheduler.advance(by: 198)
    #expect(rig.take() == [])
    scheduler.advance(by: 1)
    #expect(rig.take() == [.value(1), .requested(.max(12))])
    rig.source.send(completion: .failure(Oops(number: 3)))
    rig.source.send(completion: .finished)
    #expect(rig.source.send(4) == .none)
    scheduler.advance(by: 1)
    #expect(rig.take() == [.value(2)])
    scheduler.advance(by: 198)
    #expect(rig.take() == [])
    scheduler.advance(by: 1)
    #expect(rig.take() == [.failed(Oops(number: 3))])
    #expect(scheduler.pending == 0)
  }

  @Test func theLeastToleranceIsUsedUnlessAnotherIsGiven() {
    let rig = Rig { $0.delay(for: 200, scheduler: scheduler) }
    _ = scheduler.takeCalls()
    rig.source.send(1)
    #expect(scheduler.takeCalls() == [.once(after: 200, tolerance: 1, options: nil)])
  }

  @Test func everyRequestPasses() {
    let rig = makeRig(demand: nil)
    rig.subscription.request(.max(10))
    rig.subscription.request(.none)
    rig.subscription.request(.unlimited)
    #expect(rig.take() == [.requested(.max(10)), .requested(.none), .requested(.unlimited)])
  }

  @Test func aCompletionFollowsTheValuesBeforeIt() {
    let rig = Rig(demand: nil) { $0.delay(for: 0, scheduler: scheduler) }
    rig.source.send(1)
    rig.source.send(completion: .finished)
    scheduler.advance()
    #expect(rig.take() == [.subscription("Delay"), .value(1), .finished])
  }

  @Test func whatIsSentRightAfterSubscribingArrives() {
    let subject = CurrentValueSubject<Int, Never>(0)
    var values: [Int] = []
    let subscription = subject.delay(for: 5, scheduler: scheduler).sink { values.append($0) }
    subject.send(1)
    #expect(values == [])
    scheduler.advance(by: 5)
    #expect(values == [0, 1])
    withExtendedLifetime(subscription) {}
  }

  @Test func timersThatFireOutOfOrderDoNotChangeTheOrder() {
    /// Runs due work in reverse order.
    final class Reverse: Scheduler {
      typealias SchedulerTimeType = ManualScheduler.SchedulerTimeType
      typealias SchedulerOptions = Never
      var actions: [() -> Void] = []
      var now: SchedulerTimeType { SchedulerTimeType(nanoseconds: 0) }
      var minimumTolerance: SchedulerTimeType.Stride { 0 }
      func schedule(options: Never?, _ action: @escaping () -> Void) { action() }
      func schedule(
        after date: SchedulerTimeType, tolerance: SchedulerTimeType.Stride, options: Never?,
        _ action: @escaping () -> Void
      ) {
        actions.append(action)
      }
      func schedule(
        after date: SchedulerTimeType, interval: SchedulerTimeType.Stride,
        tolerance: SchedulerTimeType.Stride, options: Never?, _ action: @escaping () -> Void
      ) -> any Cancellable {
        AnyCancellable {}
      }
    }
    let scheduler = Reverse()
    let rig = Rig { $0.delay(for: 1, scheduler: scheduler) }
    for value in 1...3 { rig.source.send(value) }
    rig.source.send(completion: .finished)
    _ = rig.take()
    for (index, action) in scheduler.actions.reversed().enumerated() {
      action()
      #expect(rig.take() == [index < 3 ? .value(index + 1) : .finished])
    }
  }

  @Test func cancellationPassesAndForgetsWhatWaits() {
    let rig = makeRig()
    rig.source.send(1)
    rig.subscription.cancel()
    rig.subscription.cancel()
    rig.subscription.request(.max(1))
    #expect(rig.source.send(2) == .none)
    rig.source.send(completion: .finished)
    scheduler.advance(by: 1_000)
    #expect(rig.take() == [.cancelled])
  }

  @Test func cancellingWithinAValueForgetsTheRest() {
    let rig = makeRig()
    rig.subscriber.onValue = { [unowned rig] _ in rig.subscription.cancel() }
    rig.source.send(1)
    rig.source.send(2)
    scheduler.advance(by: 1_000)
    #expect(rig.take() == [.value(1), .cancelled])
  }

  @Test func cancellingBeforeTheCompletionIsDeliveredPreventsIt() {
    let rig = makeRig()
    rig.source.send(completion: .finished)
    rig.subscription.cancel()
    scheduler.advance(by: 1_000)
    #expect(rig.take() == [])
  }

  @Test func aSecondSubscriptionIsCancelled() {
    let rig = makeRig()
    rig.source.sendSubscription()
    #expect(rig.take() == [.cancelled])
  }

  @Test func anImmediateSchedulerNeedsNoMoreStackForAHundredThousandValues() {
    let subject = PassthroughSubject<Int, Never>()
    var last = 0
    let subscription = subject.delay(for: 1, scheduler: ImmediateScheduler.shared).sink {
      last = $0
      if last < 100_000 { subject.send(last + 1) }
    }
    subject.send(1)
    #expect(last == 100_000)
    subscription.cancel()
  }

  @Test func aCompletionWithinTheCompletionIsIgnored() {
    let rig = Rig { $0.delay(for: 1, scheduler: ImmediateScheduler.shared) }
    rig.subscriber.onCompletion = { [unowned rig] in rig.source.send(completion: .finished) }
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.subscription("Delay"), .requested(.unlimited), .finished])
  }

  @Test func deliveriesDoNotNest() {
    expectDeliveriesDoNotNest(after: 13) { $0.delay(for: 13, scheduler: $1) }
  }

  @Test func whatFallsDueEarlyGoesThroughTheScheduler() {
    expectEarlyDeliveriesGoThroughTheScheduler(after: 13) { $0.delay(for: 13, scheduler: $1) }
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.delay(for: 1, scheduler: ImmediateScheduler.shared) }
    expectSchedulerKeepsNothing { $0.delay(for: 200, scheduler: $1) }
  }

  @Test func withstandsReentrancy() {
    expectStreamWithstandsReentrancy(named: "Delay") {
      $0.delay(for: 1, scheduler: ImmediateScheduler.shared)
    }
  }
}
