import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct MeasureIntervalTests {
  let scheduler = ManualScheduler()

  func intervals(_ lengths: ManualScheduler.SchedulerTimeType.Stride...) -> [Happening] {
    lengths.map { .value($0) }
  }

  @Test func deliversTheTimeBetweenValues() {
    scheduler.advance(by: 3)
    let rig = Rig(demand: .max(13)) { $0.measureInterval(using: scheduler, options: .special) }
    #expect(rig.take() == [.subscription("MeasureInterval"), .requested(.max(13))])
    scheduler.advance(by: 11)
    #expect(rig.source.send(1) == .none)
    scheduler.advance(by: 3)
    rig.source.send(2)
    rig.source.send(3)
    rig.source.send(completion: .finished)
    #expect(rig.take() == intervals(11, 3, 0) + [.finished])
    #expect(scheduler.takeCalls() == [])
  }

  @Test func returnedDemandIsRequested() {
    let rig = Rig(demand: nil, perValue: .max(1)) { $0.measureInterval(using: scheduler) }
    #expect(rig.source.send(1) == .none)
    rig.subscription.request(.max(2))
    rig.subscription.request(.none)
    rig.subscription.request(.unlimited)
    #expect(
      rig.take() == [.subscription("MeasureInterval")] + intervals(0) + [
        .requested(.max(1)), .requested(.max(2)), .requested(.none), .requested(.unlimited),
      ])
  }

  @Test func sendingWithinARequestIsAllowed() {
    let rig = Rig(demand: nil, perValue: .max(1)) { $0.measureInterval(using: scheduler) }
    _ = rig.take()
    var count = 3
    rig.source.onRequest = { [unowned rig] _ in
      count -= 1
      if count > 0 { rig.source.send(0) }
    }
    rig.source.send(0)
    let step = intervals(0) + [.requested(.max(1))]
    #expect(rig.take() == step + step + step)
  }

  @Test func afterTheEndAllIsSilent() {
    for end in End.allCases {
      let rig = Rig(demand: .unlimited) { $0.measureInterval(using: scheduler) }
      _ = rig.take()
      switch end {
      case .finish:
        rig.source.send(completion: .finished)
        #expect(rig.take() == [.finished])
      case .failure:
        rig.source.send(completion: .failure(Oops(number: 1)))
        #expect(rig.take() == [.failed(Oops(number: 1))])
      case .cancel:
        rig.subscription.cancel()
        #expect(rig.take() == [.cancelled])
      }
      #expect(rig.source.send(1) == .none)
      rig.source.send(completion: .finished)
      rig.subscription.request(.max(1))
      rig.subscription.cancel()
      #expect(rig.take() == [])
    }
  }

  @Test func aSecondSubscriptionIsCancelled() {
    let rig = Rig { $0.measureInterval(using: scheduler) }
    _ = rig.take()
    rig.source.sendSubscription()
    #expect(rig.take() == [.cancelled])
    #expect(Mirror(reflecting: rig.subscription).children.isEmpty)
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.measureInterval(using: scheduler) }
  }

  @Test func withstandsReentrancy() {
    expectStreamWithstandsReentrancy(named: "MeasureInterval") { $0.measureInterval(using: scheduler) }
  }
}
