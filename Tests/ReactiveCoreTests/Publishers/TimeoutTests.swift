import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct TimeoutTests {
  typealias Limited = Publishers.Timeout<ManualPublisher<Int, Oops>, ManualScheduler>

  let scheduler = ManualScheduler()
  let timer = ManualScheduler.Call.repeatedly(after: 13, interval: 13, tolerance: 1, options: .special)

  func makeRig(
    demand: Subscribers.Demand? = .unlimited, perValue: Subscribers.Demand = .none,
    customError: (() -> Oops)? = nil
  ) -> Rig<Int, Oops, Limited> {
    Rig(demand: demand, perValue: perValue) {
      $0.timeout(13, scheduler: scheduler, options: .special, customError: customError)
    }
  }

  @Test(arguments: [nil, Oops(number: 4)])
  func endsTheStreamWhenUpstreamIsQuiet(error: Oops?) {
    let rig = makeRig(customError: error.map { error in { error } })
    #expect(rig.take() == [.subscription("Timeout"), .requested(.unlimited)])
    scheduler.advance(by: 12)
    #expect(rig.take() == [])
    scheduler.advance(by: 1)
    #expect(rig.take() == [.cancelled, error.map { .failed($0) } ?? .finished])
    #expect(scheduler.pending == 0)
    rig.source.send(1)
    rig.source.send(completion: .finished)
    rig.subscription.request(.max(1))
    rig.subscription.cancel()
    scheduler.advance(by: 100)
    #expect(rig.take() == [])
  }

  @Test func eachValueStartsTheTimeAnewAndIsDeliveredOnTheScheduler() {
    let rig = makeRig(demand: .max(2), perValue: .max(1))
    #expect(rig.take() == [.subscription("Timeout"), .requested(.max(2))])
    #expect(scheduler.takeCalls() == [timer, timer])
    for value in 1...3 {
      scheduler.advance(by: 12)
      #expect(rig.source.send(value) == .none)
      #expect(scheduler.takeCalls() == [timer, .soon(.special)])
      #expect(rig.take() == [])
      scheduler.advance()
      #expect(rig.take() == [.value(value), .requested(.max(1))])
    }
    #expect(scheduler.pending == 1)
    scheduler.advance(by: 13)
    #expect(rig.take() == [.cancelled, .finished])
  }

  @Test func onlyTheFirstRequestStartsTheTimeAnew() {
    let rig = makeRig(demand: nil)
    #expect(scheduler.takeCalls() == [timer])
    scheduler.advance(by: 10)
    rig.subscription.request(.none)
    #expect(scheduler.takeCalls() == [timer])
    scheduler.advance(by: 10)
    rig.subscription.request(.max(2))
    rig.subscription.request(.max(42))
    #expect(scheduler.takeCalls() == [])
    _ = rig.take()
    scheduler.advance(by: 3)
    rig.subscription.request(.max(13))
    #expect(rig.take() == [.cancelled, .finished])
  }

  @Test func allRequestsPass() {
    let rig = makeRig(demand: nil)
    rig.subscription.request(.none)
    rig.subscription.request(.max(2))
    rig.subscription.request(.unlimited)
    #expect(
      rig.take() == [
        .subscription("Timeout"), .requested(.none), .requested(.max(2)), .requested(.unlimited),
      ])
  }

  @Test(arguments: [Subscribers.Completion<Oops>.finished, .failure(Oops(number: 3))])
  func aCompletionStopsTheTimeAndIsDeliveredOnTheScheduler(completion: Subscribers.Completion<Oops>) {
    let rig = makeRig { Oops(number: 9) }
    _ = rig.take()
    _ = scheduler.takeCalls()
    rig.source.send(completion: completion)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    #expect(scheduler.takeCalls() == [.soon(.special)])
    #expect(scheduler.pending == 1)
    scheduler.advance(by: 100)
    #expect(rig.take() == [completion == .finished ? .finished : .failed(Oops(number: 3))])
  }

  @Test func valuesThatAreOnTheirWayPrecedeTheTimeout() {
    let rig = makeRig()
    _ = rig.take()
    rig.subscriber.onValue = { [unowned rig, scheduler] in
      if $0 == 1 {
        rig.source.send(2)
        rig.source.send(3)
        // The scheduler is late: the timeout passes before it runs the work for the values.
        scheduler.advance(by: 13)
      }
    }
    rig.source.send(1)
    scheduler.advance()
    #expect(rig.take() == [.value(1), .cancelled, .value(2), .value(3), .finished])
  }

  @Test func cancellationStopsTheTimeAndForgetsWhatWaits() {
    let rig = makeRig()
    _ = rig.take()
    rig.source.send(1)
    rig.subscription.cancel()
    rig.subscription.cancel()
    #expect(scheduler.pending == 1)
    scheduler.advance(by: 100)
    #expect(rig.take() == [.cancelled])
    #expect(scheduler.pending == 0)
  }

  @Test func cancellingBeforeTheCompletionIsDeliveredPreventsIt() {
    let rig = makeRig()
    _ = rig.take()
    rig.source.send(completion: .finished)
    rig.subscription.cancel()
    scheduler.advance(by: 100)
    #expect(rig.take() == [])
  }

  @Test func cancellingWhenUpstreamIsToldOfTheTimeoutPreventsTheFinish() {
    let rig = makeRig()
    _ = rig.take()
    rig.source.onCancel = { [unowned rig] in rig.subscription.cancel() }
    scheduler.advance(by: 13)
    #expect(rig.take() == [.cancelled])
  }

  @Test func aSecondSubscriptionIsCancelled() {
    let rig = makeRig()
    _ = rig.take()
    rig.source.sendSubscription()
    #expect(rig.take() == [.cancelled])
  }

  @Test func whereNoTimePassesItIsUpAtOnce() {
    let rig = Rig { $0.timeout(1, scheduler: ImmediateScheduler.shared) }
    #expect(rig.take() == [.cancelled, .subscription("Timeout"), .finished])
  }

  @Test func showsNothing() {
    #expect(Mirror(reflecting: makeRig().subscription).children.isEmpty)
  }

  @Test func deliveriesDoNotNest() {
    expectDeliveriesDoNotNest(after: 1) { $0.timeout(13, scheduler: $1) }
  }

  @Test func whatFallsDueEarlyGoesThroughTheScheduler() {
    expectEarlyDeliveriesGoThroughTheScheduler(after: 13) { $0.timeout(1_000, scheduler: $1) }
  }

  @Test func releasesEverything() {
    expectSchedulerKeepsNothing { $0.timeout(13, scheduler: $1) { Oops() } }
  }
}
