import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct DebounceTests {
  typealias Debounced = Publishers.Debounce<ManualPublisher<Int, Oops>, ManualScheduler>

  let scheduler = ManualScheduler()

  func makeRig(
    demand: Subscribers.Demand? = .unlimited, perValue: Subscribers.Demand = .none
  ) -> Rig<Int, Oops, Debounced> {
    let rig = Rig(demand: demand, perValue: perValue) {
      $0.debounce(for: 13, scheduler: scheduler, options: .special)
    }
    #expect(rig.take() == [.subscription("Debounce"), .requested(.unlimited)])
    #expect(scheduler.takeCalls() == [])
    return rig
  }

  @Test func deliversAValueOnceUpstreamHasBeenQuiet() {
    let rig = makeRig(demand: .max(2), perValue: .max(1))
    #expect(rig.source.send(1) == .none)
    #expect(
      scheduler.takeCalls() == [.repeatedly(after: 13, interval: 13, tolerance: 1, options: .special)])
    scheduler.advance(by: 4)
    rig.source.send(2)
    scheduler.advance(by: 12)
    rig.source.send(3)
    scheduler.advance(by: 12)
    #expect(rig.take() == [])
    scheduler.advance(by: 1)
    #expect(rig.take() == [.value(3)])
    #expect(scheduler.pending == 0)
    scheduler.advance(by: 100)
    #expect(rig.take() == [])
  }

  @Test func onlyTheLastTimerIsKept() {
    let rig = makeRig()
    for value in 1...5 {
      rig.source.send(value)
      scheduler.advance(by: 1)
    }
    #expect(scheduler.pending == 1)
  }

  @Test func aFinishComesOnTheSchedulerWithoutDelayAndForgetsWhatWaits() {
    let rig = makeRig()
    rig.source.send(1)
    _ = scheduler.takeCalls()
    rig.source.send(completion: .finished)
    rig.source.send(completion: .failure(Oops()))
    #expect(rig.source.send(2) == .none)
    #expect(rig.take() == [])
    #expect(scheduler.takeCalls() == [.soon(nil)])
    #expect(scheduler.pending == 1)
    scheduler.advance(by: 100)
    #expect(rig.take() == [.finished])
  }

  @Test func aFailureForgetsWhatWaits() {
    let rig = makeRig()
    rig.source.send(1)
    rig.source.send(completion: .failure(Oops(number: 2)))
    scheduler.advance(by: 100)
    #expect(rig.take() == [.failed(Oops(number: 2))])
  }

  @Test func aFinishFollowsAValueThatIsBeingDelivered() {
    let rig = makeRig()
    rig.subscriber.onValue = { [unowned rig, scheduler] _ in
      rig.source.send(completion: .finished)
      scheduler.advance()
    }
    rig.source.send(1)
    scheduler.advance(by: 13)
    #expect(rig.take() == [.value(1), .finished])
  }

  @Test func aValueThatFallsDueWithoutDemandIsForgotten() {
    let rig = makeRig(demand: nil)
    rig.source.send(1)
    scheduler.advance(by: 13)
    rig.subscription.request(.max(2))
    scheduler.advance(by: 100)
    #expect(rig.take() == [])
    for value in 2...4 {
      rig.source.send(value)
      scheduler.advance(by: 50)
    }
    #expect(rig.take() == [.value(2), .value(3)])
    rig.subscription.request(.max(1))
    rig.source.send(5)
    scheduler.advance(by: 13)
    #expect(rig.take() == [.value(5)])
  }

  @Test func demandThatComesInTimeIsEnough() {
    let rig = makeRig(demand: nil)
    rig.source.send(1)
    scheduler.advance(by: 12)
    rig.subscription.request(.max(1))
    scheduler.advance(by: 1)
    #expect(rig.take() == [.value(1)])
  }

  @Test func returnedDemandCounts() {
    let rig = makeRig(demand: .max(1), perValue: .max(1))
    for value in 1...3 {
      rig.source.send(value)
      scheduler.advance(by: 13)
    }
    #expect(rig.take() == [.value(1), .value(2), .value(3)])
  }

  @Test func cancellationForgetsWhatWaits() {
    let rig = makeRig()
    rig.source.send(1)
    rig.subscription.cancel()
    rig.subscription.cancel()
    #expect(scheduler.pending == 0)
    rig.source.send(2)
    rig.source.send(completion: .finished)
    rig.subscription.request(.max(1))
    scheduler.advance(by: 100)
    #expect(rig.take() == [.cancelled])
  }

  @Test func cancellingBeforeTheFinishIsDeliveredPreventsIt() {
    let rig = makeRig()
    rig.source.send(completion: .finished)
    rig.subscription.cancel()
    scheduler.advance(by: 100)
    #expect(rig.take() == [])
  }

  @Test func cancellingWithinAValueEndsEverything() {
    let rig = makeRig()
    rig.subscriber.onValue = { [unowned rig] _ in
      rig.source.send(2)
      rig.subscription.cancel()
    }
    rig.source.send(1)
    scheduler.advance(by: 100)
    #expect(rig.take() == [.value(1), .cancelled])
    #expect(scheduler.pending == 0)
  }

  @Test func aSecondSubscriptionIsCancelled() {
    let rig = makeRig()
    rig.source.sendSubscription()
    #expect(rig.take() == [.cancelled])
  }

  @Test func anImmediateSchedulerDeliversAtOnceInConstantStack() {
    let subject = PassthroughSubject<Int, Never>()
    var last = 0
    let subscription = subject.debounce(for: 1, scheduler: ImmediateScheduler.shared).sink { value in
      last = value
      if value < 100_000 { subject.send(value + 1) }
    }
    subject.send(1)
    #expect(last == 100_000)
    subscription.cancel()
  }

  @Test func showsWhatItHolds() {
    let rig = makeRig(demand: .max(2))
    rig.source.send(7)
    let children = Array(Mirror(reflecting: rig.subscription).children)
    #expect(children.map(\.label) == ["downstream", "downstreamDemand", "currentValue"])
    #expect(children[1].value as? Subscribers.Demand == .max(2))
    #expect(children[2].value as? Int == 7)
    #expect(
      (rig.subscription as? any CustomPlaygroundDisplayConvertible)?.playgroundDescription as? String
        == "Debounce")
  }

  @Test func deliveriesDoNotNest() {
    expectDeliveriesDoNotNest(after: 13) { $0.debounce(for: 13, scheduler: $1) }
  }

  @Test func whatFallsDueEarlyGoesThroughTheScheduler() {
    expectEarlyDeliveriesGoThroughTheScheduler(after: 13) { $0.debounce(for: 13, scheduler: $1) }
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.debounce(for: 1, scheduler: ImmediateScheduler.shared) }
    expectSchedulerKeepsNothing { $0.debounce(for: 13, scheduler: $1) }
  }

  @Test func aSourceMayDeliverEverythingWithinTheRequest() {
    let subscriber = TrackingSubscriber<Int, Never>(.unlimited)
    let numbers = (1...3).publisher.eraseToAnyPublisher()
    numbers.debounce(for: 5, scheduler: scheduler).subscribe(subscriber)
    scheduler.advance(by: 10)
    #expect(subscriber.history.events == [.subscription("Debounce"), .finished])
  }
}
