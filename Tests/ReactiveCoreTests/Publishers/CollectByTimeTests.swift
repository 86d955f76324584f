import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct CollectByTimeTests {
  typealias Collected = Publishers.CollectByTime<ManualPublisher<Int, Oops>, ManualScheduler>

  let scheduler = ManualScheduler()

  func makeRig(
    count: Int? = nil, demand: Subscribers.Demand? = .unlimited, perValue: Subscribers.Demand = .none
  ) -> Rig<Int, Oops, Collected> {
    let rig = Rig(demand: demand, perValue: perValue) {
      $0.collect(
        count.map { .byTimeOrCount(scheduler, 20, $0) } ?? .byTime(scheduler, 20), options: .special)
    }
    #expect(
      scheduler.takeCalls() == [.repeatedly(after: 20, interval: 20, tolerance: 1, options: .special)])
    return rig
  }

  // MARK: By time

  @Test func deliversWhatCameInEachInterval() {
    let rig = makeRig()
    #expect(rig.take() == [.subscription("CollectByTime"), .requested(.max(1))])
    #expect(rig.source.send(1) == .max(1))
    scheduler.advance(by: 19)
    #expect(rig.source.send(2) == .max(1))
    #expect(rig.take() == [])
    scheduler.advance(by: 1)
    #expect(rig.take() == [.value([1, 2])])
    scheduler.advance(by: 20)
    #expect(rig.take() == [])
    rig.source.send(3)
    scheduler.advance(by: 20)
    #expect(rig.take() == [.value([3])])
    #expect(scheduler.pending == 1)
  }

  @Test func aFinishDeliversWhatIsLeftOnTheScheduler() {
    let rig = makeRig(demand: .max(1))
    _ = rig.take()
    rig.source.send(1)
    rig.source.send(completion: .finished)
    rig.source.send(completion: .failure(Oops()))
    #expect(rig.source.send(2) == .none)
    #expect(rig.take() == [])
    #expect(scheduler.takeCalls() == [.soon(.special)])
    #expect(scheduler.pending == 1)
    scheduler.advance()
    #expect(rig.take() == [.value([1]), .finished])
  }

  @Test func aFailureForgetsWhatIsLeft() {
    let rig = makeRig()
    _ = rig.take()
    rig.source.send(1)
    rig.source.send(completion: .failure(Oops(number: 2)))
    #expect(rig.take() == [])
    scheduler.advance()
    #expect(rig.take() == [.failed(Oops(number: 2))])
    #expect(scheduler.pending == 0)
  }

  @Test func withoutDemandValuesAreKept() {
    let rig = makeRig(demand: nil)
    #expect(rig.take() == [.subscription("CollectByTime")])
    rig.source.send(1)
    scheduler.advance(by: 20)
    rig.source.send(2)
    scheduler.advance(by: 20)
    #expect(rig.take() == [])
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.requested(.max(1))])
    scheduler.advance(by: 20)
    rig.source.send(3)
    scheduler.advance(by: 20)
    #expect(rig.take() == [.value([1, 2])])
  }

  @Test func returnedDemandCountsButAsksUpstreamForNothing() {
    let rig = makeRig(demand: .max(1), perValue: .max(1))
    for value in 1...3 {
      rig.source.send(value)
      scheduler.advance(by: 20)
    }
    #expect(
      rig.take() == [
        .subscription("CollectByTime"), .requested(.max(1)), .value([1]), .value([2]), .value([3]),
      ])
  }

  @Test func aFinishWaitsUntilWhatIsLeftIsAskedFor() {
    let rig = makeRig(demand: .max(1))
    rig.source.send(1)
    scheduler.advance(by: 20)
    rig.source.send(2)
    rig.source.send(completion: .finished)
    scheduler.advance(by: 100)
    #expect(rig.take() == [.subscription("CollectByTime"), .requested(.max(1)), .value([1])])
    rig.subscription.request(.max(1))
    #expect(rig.take() == [])
    scheduler.advance()
    #expect(rig.take() == [.value([2]), .finished])
  }

  // MARK: By time or count

  @Test func fullArraysDoNotWaitForTheInterval() {
    let rig = makeRig(count: 2)
    #expect(rig.take() == [.subscription("CollectByTime"), .requested(.unlimited)])
    for value in 1...3 { #expect(rig.source.send(value) == .none) }
    #expect(rig.take() == [])
    #expect(scheduler.takeCalls() == [.soon(.special)])
    scheduler.advance()
    #expect(rig.take() == [.value([1, 2])])
    scheduler.advance(by: 20)
    #expect(rig.take() == [.value([3])])
    for value in 4...8 { rig.source.send(value) }
    scheduler.advance(by: 20)
    rig.source.send(completion: .finished)
    scheduler.advance()
    #expect(rig.take() == [.value([4, 5]), .value([6, 7]), .value([8]), .finished])
  }

  @Test func demandIsMultipliedByTheCount() {
    let rig = makeRig(count: 3, demand: .max(2), perValue: .max(1))
    #expect(rig.take() == [.subscription("CollectByTime"), .requested(.max(6))])
    for value in 1...3 { rig.source.send(value) }
    scheduler.advance()
    #expect(rig.take() == [.value([1, 2, 3]), .requested(.max(3))])
    rig.source.send(4)
    scheduler.advance(by: 20)
    #expect(rig.take() == [.value([4]), .requested(.max(3))])
    rig.subscription.request(.max(.max))
    #expect(rig.take() == [.requested(.unlimited)])
  }

  @Test func arraysThatArePartlyFullUseUpDemandToo() {
    let rig = makeRig(count: 3, demand: .max(1))
    rig.source.send(1)
    scheduler.advance(by: 20)
    for value in 2...5 { rig.source.send(value) }
    scheduler.advance(by: 20)
    #expect(rig.take() == [.subscription("CollectByTime"), .requested(.max(3)), .value([1])])
    rig.subscription.request(.max(2))
    scheduler.advance()
    #expect(rig.take() == [.requested(.max(6)), .value([2, 3, 4])])
    scheduler.advance(by: 20)
    #expect(rig.take() == [.value([5])])
  }

  @Test func whatIsLeftAtTheFinishComesInArraysOfTheCount() {
    let rig = makeRig(count: 2, demand: .max(1))
    for value in 1...5 { rig.source.send(value) }
    rig.source.send(completion: .finished)
    scheduler.advance()
    #expect(rig.take() == [.subscription("CollectByTime"), .requested(.max(2)), .value([1, 2])])
    rig.subscription.request(.max(1))
    scheduler.advance()
    #expect(rig.take() == [.value([3, 4])])
    rig.subscription.request(.unlimited)
    scheduler.advance()
    #expect(rig.take() == [.value([5]), .finished])
  }

  @Test func anArrayOfTheIntervalFollowsAFullOneThatIsOnItsWay() {
    var send: () -> Void = {}
    scheduler.schedule(after: scheduler.now.advanced(by: 20)) { send() }
    _ = scheduler.takeCalls()
    let rig = makeRig(count: 2)
    _ = rig.take()
    // The interval ends before the scheduler runs the work for the full array.
    send = { [unowned rig] in
      for value in 1...3 { rig.source.send(value) }
    }
    scheduler.advance(by: 20)
    #expect(rig.take() == [.value([1, 2]), .value([3])])
  }

  @Test func aCountOfNoneIsRefused() async {
    await #expect(processExitsWith: .failure) {
      _ = Rig<Int, Oops, _>(demand: nil) { $0.collect(.byTimeOrCount(ManualScheduler(), 1, 0)) }
    }
  }

  // MARK: Both

  @Test(arguments: [nil, 3])
  func cancellationStopsTheTimerAndForgetsWhatWaits(count: Int?) {
    let rig = makeRig(count: count)
    _ = rig.take()
    for value in 1...4 { rig.source.send(value) }
    rig.subscription.cancel()
    rig.subscription.cancel()
    #expect(scheduler.pending == (count == nil ? 0 : 1))
    #expect(rig.source.send(5) == .none)
    rig.source.send(completion: .finished)
    rig.subscription.request(.max(1))
    scheduler.advance(by: 100)
    #expect(rig.take() == [.cancelled])
    #expect(scheduler.pending == 0)
  }

  @Test(arguments: [nil, 1])
  func cancellingWithinAnArrayEndsEverything(count: Int?) {
    let rig = makeRig(count: count)
    _ = rig.take()
    rig.subscriber.onValue = { [unowned rig] _ in
      rig.source.send(2)
      rig.subscription.cancel()
    }
    rig.source.send(1)
    scheduler.advance(by: 100)
    #expect(rig.take() == [.value([1]), .cancelled])
  }

  @Test func cancellingBeforeTheFinishIsDeliveredPreventsIt() {
    let rig = makeRig()
    _ = rig.take()
    rig.source.send(1)
    rig.source.send(completion: .finished)
    rig.subscription.cancel()
    scheduler.advance(by: 100)
    #expect(rig.take() == [])
  }

  @Test func aSecondSubscriptionIsCancelled() {
    let rig = makeRig()
    _ = rig.take()
    rig.source.sendSubscription()
    #expect(rig.take() == [.cancelled])
    #expect(Mirror(reflecting: rig.subscription).children.isEmpty)
  }

  @Test func theTimerEndsWithAPipelineThatEveryoneHasLetGoOf() {
    do {
      let rig = makeRig()
      rig.subscriber.subscription = nil
      rig.source.forget()
    }
    #expect(scheduler.pending == 0)
  }

  @Test func deliveriesDoNotNest() {
    expectDeliveriesDoNotNest(after: 13) { $0.collect(.byTimeOrCount($1, 100, 1)) }
  }

  @Test func whatFallsDueEarlyGoesThroughTheScheduler() {
    expectEarlyDeliveriesGoThroughTheScheduler(after: 13) { $0.collect(.byTime($1, 13)) }
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.collect(.byTime(ImmediateScheduler.shared, 1)) }
    expectEverythingReleased { $0.collect(.byTimeOrCount(ImmediateScheduler.shared, 1, 2)) }
    expectSchedulerKeepsNothing { $0.collect(.byTime($1, 20)) }
    expectSchedulerKeepsNothing { $0.collect(.byTimeOrCount($1, 20, 1)) }
  }

  @Test func aSourceMayDeliverEverythingWithinTheRequest() {
    let subscriber = TrackingSubscriber<[Int], Never>(.unlimited)
    let numbers = (1...3).publisher.eraseToAnyPublisher()
    numbers.collect(.byTime(scheduler, 5)).subscribe(subscriber)
    scheduler.advance(by: 10)
    #expect(subscriber.history.events == [.subscription("CollectByTime"), .value([1, 2, 3]), .finished])
  }
}
