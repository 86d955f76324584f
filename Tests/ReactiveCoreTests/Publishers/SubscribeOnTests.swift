import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct SubscribeOnTests {
  typealias Moved = Publishers.SubscribeOn<ManualPublisher<Int, Oops>, ManualScheduler>

  let scheduler = ManualScheduler()

  func makeRig(
    demand: Subscribers.Demand? = nil, perValue: Subscribers.Demand = .none
  ) -> Rig<Int, Oops, Moved> {
    let rig = Rig(demand: demand, perValue: perValue) { $0.subscribe(on: scheduler, options: .special) }
    #expect(rig.take() == [])
    #expect(rig.source.subscriber == nil)
    #expect(scheduler.takeCalls() == [.soon(.special)])
    scheduler.runWaiting()
    #expect(rig.take() == [.subscription("SubscribeOn")])
    return rig
  }

  @Test func requestsAndCancellationPassOnTheScheduler() {
    let rig = makeRig()
    rig.subscription.request(.max(17))
    rig.subscription.request(.none)
    rig.subscription.request(.unlimited)
    #expect(rig.take() == [])
    #expect(scheduler.takeCalls() == [.soon(.special), .soon(.special), .soon(.special)])
    scheduler.advance()
    #expect(rig.take() == [.requested(.max(17)), .requested(.none), .requested(.unlimited)])
    rig.subscription.cancel()
    #expect(rig.take() == [])
    scheduler.advance()
    #expect(rig.take() == [.cancelled])
  }

  @Test func deliveriesPassAtOnceWithTheDemandReturned() {
    let rig = makeRig(demand: .max(100), perValue: .max(12))
    scheduler.advance()
    #expect(rig.source.send(1) == .max(12))
    rig.source.send(completion: .failure(Oops(number: 2)))
    rig.source.send(completion: .finished)
    #expect(rig.source.send(3) == .none)
    #expect(rig.take() == [.requested(.max(100)), .value(1), .failed(Oops(number: 2))])
    rig.subscription.request(.max(1))
    rig.subscription.cancel()
    #expect(scheduler.pending == 0)
  }

  @Test func nothingIsDeliveredOnceCancelled() {
    let rig = makeRig()
    rig.subscription.cancel()
    #expect(rig.source.send(1) == .none)
    rig.source.send(completion: .finished)
    #expect(scheduler.pending == 1)
    scheduler.advance()
    rig.subscription.request(.max(1))
    rig.subscription.cancel()
    #expect(scheduler.pending == 0)
    #expect(rig.take() == [.cancelled])
  }

  @Test func aRequestBeforeTheCancellationPassesBeforeIt() {
    let rig = makeRig()
    rig.subscription.request(.unlimited)
    rig.subscription.cancel()
    scheduler.advance()
    #expect(rig.take() == [.requested(.unlimited), .cancelled])
  }

  @Test func cancellingWithinTheCancellationIsAllowed() {
    let rig = Rig(demand: nil) { $0.subscribe(on: ImmediateScheduler.shared) }
    rig.source.onCancel = { [unowned rig] in rig.subscription.cancel() }
    rig.subscription.cancel()
    #expect(rig.take() == [.subscription("SubscribeOn"), .cancelled])
  }

  @Test func requestingWithinARequestIsAllowed() {
    let rig = Rig(demand: nil) { $0.subscribe(on: ImmediateScheduler.shared) }
    rig.source.onRequest = { [unowned rig] in
      if $0 == .max(1) { rig.subscription.request(.max(2)) }
    }
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.subscription("SubscribeOn"), .requested(.max(1)), .requested(.max(2))])
  }

  @Test func aRequestKeepsNothingAlive() {
    var isReleased = false
    do {
      let rig = makeRig(demand: .max(1))
      rig.subscriber.onDeinit = { isReleased = true }
      rig.subscriber.subscription = nil
      rig.source.forget()
      #expect(scheduler.pending == 1)
    }
    #expect(isReleased)
    scheduler.advance()
  }

  @Test func aSecondSubscriptionIsCancelled() {
    let rig = makeRig()
    rig.source.sendSubscription()
    #expect(rig.take() == [.cancelled])
    #expect(Mirror(reflecting: rig.subscription).children.isEmpty)
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.subscribe(on: ImmediateScheduler.shared) }
  }

  @Test func withstandsReentrancy() {
    expectStreamWithstandsReentrancy(named: "SubscribeOn") { $0.subscribe(on: ImmediateScheduler.shared) }
  }
}
