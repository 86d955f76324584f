import ReactiveCore
import ReactiveTestSupport
import Synchronization
import Testing

@Suite struct CollectByCountTests {
  func makeRig(
    count: Int = 4, demand: Subscribers.Demand? = .unlimited, perValue: Subscribers.Demand = .none
  ) -> Rig<Int, Oops, Publishers.CollectByCount<ManualPublisher<Int, Oops>>> {
    Rig(demand: demand, perValue: perValue) { $0.collect(count) }
  }

  @Test func deliversFullArraysAndWhatIsLeftAtTheFinish() {
    let rig = makeRig(demand: .max(2), perValue: .max(3))
    #expect(rig.take() == [.subscription("CollectByCount"), .requested(.max(8))])
    for value in 1...10 {
      #expect(rig.source.send(value) == (value.isMultiple(of: 4) ? .max(12) : .none))
    }
    #expect(rig.take() == [.value([1, 2, 3, 4]), .value([5, 6, 7, 8])])
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.value([9, 10]), .finished])
  }

  @Test func aFinishWithNothingLeftDeliversNothingElse() {
    let rig = makeRig()
    for value in 1...4 { rig.source.send(value) }
    _ = rig.take()
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.finished])
  }

  @Test func aFailureForgetsWhatIsLeft() {
    let rig = makeRig()
    rig.source.send(1)
    _ = rig.take()
    rig.source.send(completion: .failure(Oops(number: 2)))
    #expect(rig.take() == [.failed(Oops(number: 2))])
  }

  @Test func demandIsMultipliedAndStopsAtUnlimited() {
    let rig = makeRig(demand: nil)
    rig.subscription.request(.max(3))
    rig.subscription.request(.max(.max))
    rig.subscription.request(.unlimited)
    #expect(rig.take().dropFirst() == [.requested(.max(12)), .requested(.unlimited), .requested(.unlimited)])
  }

  @Test func noDemandIsAViolation() async {
    await #expect(processExitsWith: .failure) {
      let rig = Rig<Int, Oops, _>(demand: nil) { $0.collect(4) }
      rig.subscription.request(.none)
    }
  }

  @Test func aCountOfNoneIsRefused() async {
    await #expect(processExitsWith: .failure) {
      _ = Rig<Int, Oops, _>(demand: nil) { $0.collect(0) }
    }
  }

  @Test func aCountOfOneIsEveryValue() {
    let rig = makeRig(count: 1, demand: .max(1), perValue: .max(2))
    #expect(rig.source.send(1) == .max(2))
    #expect(rig.take() == [.subscription("CollectByCount"), .requested(.max(1)), .value([1])])
  }

  @Test func aGreatCountNeedsNoRoomInAdvance() {
    let rig = makeRig(count: .max, demand: .max(1))
    rig.source.send(1)
    rig.source.send(completion: .finished)
    #expect(
      rig.take() == [.subscription("CollectByCount"), .requested(.max(.max)), .value([1]), .finished])
  }

  @Test func afterTheEndAllIsSilent() {
    for end in End.allCases {
      let rig = makeRig()
      rig.source.sendSubscription()
      switch end {
      case .finish: rig.source.send(completion: .finished)
      case .failure: rig.source.send(completion: .failure(Oops()))
      case .cancel: rig.subscription.cancel()
      }
      #expect(rig.take().count == 4)
      for value in 1...5 { #expect(rig.source.send(value) == .none) }
      rig.source.send(completion: .finished)
      rig.source.sendSubscription()
      rig.subscription.request(.max(1))
      rig.subscription.cancel()
      #expect(rig.take() == [.cancelled])
    }
  }

  @Test func cancellingWithinAnArrayEndsEverything() {
    let rig = makeRig(count: 2)
    rig.subscriber.onValue = { [unowned rig] _ in rig.subscription.cancel() }
    _ = rig.take()
    for value in 1...5 { rig.source.send(value) }
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.value([1, 2]), .cancelled])
  }

  @Test func valuesSentWithinAnArrayBelongToTheNext() {
    let rig = makeRig(count: 2)
    rig.subscriber.onValue = { [unowned rig] in
      if $0 == [1, 2] { rig.source.send(3) }
    }
    _ = rig.take()
    for value in [1, 2, 4] { rig.source.send(value) }
    #expect(rig.take() == [.value([1, 2]), .value([3, 4])])
  }

  @Test func aSourceDeliversExactlyWhatTheArraysHold() {
    let subscriber = TrackingSubscriber<[Int], Never>(.max(1), perValue: .max(1))
    (1...7).publisher.collect(3).subscribe(subscriber)
    #expect(
      subscriber.history.take() == [
        .subscription("CollectByCount"), .value([1, 2, 3]), .value([4, 5, 6]), .value([7]), .finished,
      ])
  }

  @Test func showsWhatItHolds() {
    let rig = makeRig(count: 53)
    rig.source.send(1)
    let children = Array(Mirror(reflecting: rig.subscription).children)
    #expect(children.map(\.label) == ["downstream", "upstreamSubscription", "buffer", "count"])
    #expect(children[2].value as? [Int] == [1])
    #expect(children[3].value as? Int == 53)
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.collect(42) }
    expectSchedulerKeepsNothing { source, _ in source.collect(2) }
  }

  @Test func publishersOfEqualPartsAreEqual() {
    #expect(Just(1).collect(2) == Just(1).collect(2))
    #expect(Just(1).collect(2) != Just(1).collect(3))
  }

  @Test func sendingAndCancellingMayRace() async {
    for _ in 0..<100 {
      let subject = UncheckedBox(PassthroughSubject<Int, Never>())
      let subscriber = UncheckedBox(TrackingSubscriber<[Int], Never>(.unlimited))
      subject.value.collect(7).subscribe(subscriber.value)
      async let sending: Void = { for value in 0..<500 { subject.value.send(value) } }()
      async let cancelling: Void = { subscriber.value.subscription?.cancel() }()
      _ = await (sending, cancelling)
      let arrays = subscriber.value.history.take().dropFirst()
      for (index, array) in arrays.enumerated() {
        #expect(array == .value(Array(index * 7..<index * 7 + 7)))
      }
    }
  }
}
