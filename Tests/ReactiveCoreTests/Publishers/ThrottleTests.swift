import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct ThrottleTests {
  typealias Throttled = Publishers.Throttle<ManualPublisher<Int, Oops>, ManualScheduler>

  let scheduler = ManualScheduler()

  func makeRig(
    latest: Bool, demand: Subscribers.Demand? = .unlimited, perValue: Subscribers.Demand = .none
  ) -> Rig<Int, Oops, Throttled> {
    let rig = Rig(demand: demand, perValue: perValue) {
      $0.throttle(for: 60, scheduler: scheduler, latest: latest)
    }
    #expect(rig.take() == [.subscription("Throttle"), .requested(.unlimited)])
    #expect(scheduler.takeCalls() == [])
    return rig
  }

  @Test(arguments: [true, false])
  func deliversTheFirstOrTheLatestOfEachInterval(latest: Bool) {
    let rig = makeRig(latest: latest)
    #expect(rig.source.send(1) == .none)
    #expect(scheduler.takeCalls() == [.soon(nil)])
    rig.source.send(2)
    rig.source.send(3)
    #expect(scheduler.takeCalls() == [])
    scheduler.advance()
    #expect(rig.take() == [.value(latest ? 3 : 1)])
    rig.source.send(4)
    #expect(scheduler.takeCalls() == [.once(after: 60, tolerance: 1, options: nil)])
    scheduler.advance(by: 45)
    rig.source.send(5)
    #expect(rig.take() == [])
    scheduler.advance(by: 15)
    #expect(rig.take() == [.value(latest ? 5 : 4)])
    #expect(scheduler.pending == 0)
  }

  @Test func theIntervalStartsWithTheLastDelivery() {
    let rig = makeRig(latest: false)
    rig.source.send(0)
    scheduler.advance()
    scheduler.advance(by: 45)
    _ = scheduler.takeCalls()
    rig.source.send(1)
    #expect(scheduler.takeCalls() == [.once(after: 15, tolerance: 1, options: nil)])
    scheduler.advance(by: 15)
    scheduler.advance(by: 61)
    rig.source.send(2)
    #expect(scheduler.takeCalls() == [.soon(nil)])
    scheduler.advance()
    #expect(rig.take() == [.value(0), .value(1), .value(2)])
  }

  @Test func aCompletionFollowsTheValueThatWaits() {
    let rig = makeRig(latest: true)
    rig.source.send(1)
    scheduler.advance()
    rig.source.send(2)
    _ = scheduler.takeCalls()
    rig.source.send(completion: .failure(Oops(number: 3)))
    rig.source.send(completion: .finished)
    #expect(rig.source.send(4) == .none)
    #expect(scheduler.takeCalls() == [])
    #expect(rig.take() == [.value(1)])
    scheduler.advance(by: 60)
    #expect(rig.take() == [.value(2), .failed(Oops(number: 3))])
  }

  @Test func aCompletionThatNothingPrecedesComesWithoutDelay() {
    let rig = makeRig(latest: true, demand: nil)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    #expect(scheduler.takeCalls() == [.soon(nil)])
    scheduler.advance()
    #expect(rig.take() == [.finished])
  }

  /// The current value arrives within the call of `request(_:)`.
  @Test func getsWhatUpstreamSendsWhileItIsSubscribedTo() {
    let subject = CurrentValueSubject<Int, Never>(-1)
    var values: [Int] = []
    let subscription = subject.throttle(for: 60, scheduler: scheduler, latest: true).sink {
      values.append($0)
    }
    scheduler.advance()
    #expect(values == [-1])
    subject.send(1)
    subject.send(2)
    scheduler.advance(by: 60)
    #expect(values == [-1, 2])
    subscription.cancel()
  }

  @Test func valuesWithoutDemandAreForgotten() {
    let rig = makeRig(latest: true, demand: nil)
    rig.source.send(1)
    #expect(scheduler.takeCalls() == [])
    rig.subscription.request(.max(1))
    rig.subscription.request(.none)
    rig.subscription.request(.max(1))
    for value in 2...5 {
      rig.source.send(value)
      scheduler.advance(by: 100)
    }
    #expect(rig.take() == [.value(2), .value(3)])
    rig.source.send(completion: .finished)
    scheduler.advance()
    #expect(rig.take() == [.finished])
  }

  @Test func aLaterValueNeedsNoDemandOfItsOwn() {
    let rig = makeRig(latest: true, demand: .max(1))
    rig.source.send(1)
    rig.source.send(2)
    scheduler.advance(by: 100)
    #expect(rig.take() == [.value(2)])
  }

  @Test func returnedDemandCounts() {
    let rig = makeRig(latest: false, demand: .max(1), perValue: .max(1))
    for value in 1...3 {
      rig.source.send(value)
      scheduler.advance(by: 60)
    }
    #expect(rig.take() == [.value(1), .value(2), .value(3)])
  }

  @Test func cancellationForgetsWhatWaits() {
    let rig = makeRig(latest: true)
    rig.source.send(1)
    rig.subscription.cancel()
    rig.subscription.cancel()
    rig.subscription.request(.max(1))
    rig.source.send(2)
    rig.source.send(completion: .finished)
    scheduler.advance(by: 100)
    #expect(rig.take() == [.cancelled])
  }

  @Test func cancellingBeforeTheCompletionIsDeliveredPreventsIt() {
    let rig = makeRig(latest: true)
    rig.source.send(1)
    rig.source.send(completion: .finished)
    rig.subscription.cancel()
    scheduler.advance(by: 100)
    #expect(rig.take() == [])
  }

  @Test func cancellingWithinAValueEndsEverything() {
    let rig = makeRig(latest: true)
    rig.subscriber.onValue = { [unowned rig] _ in
      rig.source.send(2)
      rig.source.send(completion: .finished)
      rig.subscription.cancel()
    }
    rig.source.send(1)
    scheduler.advance(by: 100)
    #expect(rig.take() == [.value(1)])
  }

  @Test func aSecondSubscriptionIsCancelled() {
    let rig = makeRig(latest: true)
    rig.source.sendSubscription()
    #expect(rig.take() == [.cancelled])
  }

  @Test func anImmediateSchedulerDeliversEverythingInConstantStack() {
    let subject = PassthroughSubject<Int, Never>()
    var last = 0
    let subscription = subject.throttle(for: 1, scheduler: ImmediateScheduler.shared, latest: true).sink {
      last = $0
      if last < 100_000 { subject.send(last + 1) }
    }
    subject.send(1)
    #expect(last == 100_000)
    subscription.cancel()
  }

  @Test func showsNothing() {
    #expect(Mirror(reflecting: makeRig(latest: true).subscription).children.isEmpty)
  }

  @Test func deliveriesDoNotNest() {
    expectDeliveriesDoNotNest(after: 13) { $0.throttle(for: 13, scheduler: $1, latest: true) }
  }

  @Test func whatFallsDueEarlyGoesThroughTheScheduler() {
    expectEarlyDeliveriesGoThroughTheScheduler(after: 13) {
      $0.throttle(for: 13, scheduler: $1, latest: true)
    }
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.throttle(for: 1, scheduler: ImmediateScheduler.shared, latest: true) }
    expectSchedulerKeepsNothing { $0.throttle(for: 60, scheduler: $1, latest: true) }
  }

  @Test func aSourceMayDeliverEverythingWithinTheRequest() {
    let subscriber = TrackingSubscriber<Int, Never>(.unlimited)
    let numbers = (1...3).publisher.eraseToAnyPublisher()
    numbers.throttle(for: 5, scheduler: scheduler, latest: true).subscribe(subscriber)
    scheduler.advance(by: 10)
    #expect(subscriber.history.events == [.subscription("Throttle"), .value(3), .finished])
  }
}
