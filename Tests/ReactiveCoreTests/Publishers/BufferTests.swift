import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct BufferTests {
  typealias Strategy = Publishers.BufferingStrategy<Oops>

  func makeRig(
    size: Int = 3, prefetch: Publishers.PrefetchStrategy = .byRequest, whenFull: Strategy = .dropNewest,
    demand: Subscribers.Demand? = nil
  ) -> Rig<Int, Oops, Publishers.Buffer<ManualPublisher<Int, Oops>>> {
    Rig(demand: demand) { $0.buffer(size: size, prefetch: prefetch, whenFull: whenFull) }
  }

  @Test func asksUpstreamBeforeDownstreamIsTold() {
    #expect(makeRig().take() == [.requested(.unlimited), .subscription("Buffer")])
    #expect(makeRig(size: 42, prefetch: .keepFull).take() == [.requested(.max(42)), .subscription("Buffer")])
  }

  @Test func dropsTheNewest() {
    let rig = makeRig()
    for value in 1...5 { #expect(rig.source.send(value) == .none) }
    _ = rig.take()
    rig.subscription.request(.max(2))
    rig.subscription.request(.max(2))
    #expect(rig.take() == [.value(1), .value(2), .value(3)])
    rig.source.send(6)
    #expect(rig.take() == [.value(6)])
  }

  @Test func dropsTheOldest() {
    let rig = makeRig(whenFull: .dropOldest)
    for value in 1...5 { rig.source.send(value) }
    _ = rig.take()
    rig.subscription.request(.max(3))
    #expect(rig.take() == [.value(3), .value(4), .value(5)])
  }

  @Test func failsAfterWhatItHoldsHasBeenDelivered() {
    let rig = makeRig(whenFull: .customError { Oops(number: 9) })
    for value in 1...5 { #expect(rig.source.send(value) == .none) }
    #expect(rig.take() == [.requested(.unlimited), .subscription("Buffer"), .cancelled])
    rig.subscription.request(.max(3))
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.value(1), .value(2), .value(3), .failed(Oops(number: 9))])
  }

  @Test func theFailureOfAFullBufferWaitsUntilAllIsAskedFor() {
    let rig = makeRig(whenFull: .customError { Oops(number: 9) })
    for value in 1...4 { rig.source.send(value) }
    _ = rig.take()
    for value in 1...2 {
      rig.subscription.request(.max(1))
      #expect(rig.take() == [.value(value)])
    }
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.value(3), .failed(Oops(number: 9))])
  }

  @Test func aSourceThatOverflowsTheBufferWithinTheRequestLosesNothing() {
    let source = (1...9).publisher.setFailureType(to: Oops.self)
    let subscriber = TrackingSubscriber<Int, Oops>()
    source.buffer(size: 3, prefetch: .byRequest, whenFull: .customError { Oops(number: 9) }).subscribe(
      subscriber)
    #expect(subscriber.history.take() == [.subscription("Buffer")])
    subscriber.subscription?.request(.max(2))
    #expect(subscriber.history.take() == [.value(1), .value(2)])
    subscriber.subscription?.request(.max(1))
    #expect(subscriber.history.take() == [.value(3), .failed(Oops(number: 9))])
  }

  @Test func withoutRoomTheFirstValueFails() {
    let rig = makeRig(size: 0, whenFull: .customError { Oops(number: 9) }, demand: .unlimited)
    rig.source.send(1)
    #expect(
      rig.take() == [
        .requested(.unlimited), .subscription("Buffer"), .cancelled, .failed(Oops(number: 9)),
      ])
  }

  @Test func keepsItselfFull() {
    let rig = makeRig(prefetch: .keepFull)
    for value in 1...3 { #expect(rig.source.send(value) == .none) }
    _ = rig.take()
    rig.subscription.request(.max(2))
    #expect(rig.take() == [.value(1), .value(2), .requested(.max(2))])
    rig.subscription.request(.unlimited)
    #expect(rig.take() == [.value(3), .requested(.max(1))])
    #expect(rig.source.send(4) == .max(1))
    #expect(rig.take() == [.value(4)])
  }

  @Test func aFinishWaitsForDemand() {
    let rig = makeRig()
    rig.source.send(1)
    rig.source.send(completion: .finished)
    rig.source.send(completion: .failure(Oops()))
    _ = rig.take()
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.value(1)])
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.finished])
    rig.subscription.request(.max(1))
    rig.source.send(2)
    #expect(rig.take() == [])
  }

  @Test func aFailureWithoutDemandComesAtOnce() {
    let rig = makeRig()
    rig.source.send(1)
    _ = rig.take()
    rig.source.send(completion: .failure(Oops(number: 2)))
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.failed(Oops(number: 2))])
  }

  @Test func aFailureWithinAValueWaitsForTheValuesAskedFor() {
    let rig = makeRig(size: 5)
    for value in 1...3 { rig.source.send(value) }
    rig.subscriber.onValue = { [unowned rig] _ in rig.source.send(completion: .failure(Oops(number: 1))) }
    _ = rig.take()
    rig.subscription.request(.max(3))
    #expect(rig.take() == [.value(1), .value(2), .value(3), .failed(Oops(number: 1))])
  }

  @Test(arguments: [Publishers.PrefetchStrategy.keepFull, .byRequest])
  func requestsWithinAValueAreServedInTurn(prefetch: Publishers.PrefetchStrategy) {
    let rig = makeRig(size: 5, prefetch: prefetch, demand: .max(3))
    rig.subscriber.onValue = { [unowned rig] _ in
      rig.subscription.request(.max(1))
      rig.subscription.request(.none)
    }
    _ = rig.take()
    for value in 0..<10 { #expect(rig.source.send(value) == (prefetch == .keepFull ? .max(1) : .none)) }
    #expect(rig.take() == (0..<10).map { .value($0) })
  }

  @Test func valuesThatAreAskedForTakeUpNoRoom() {
    let rig = makeRig(size: 2)
    rig.source.send(1)
    rig.source.send(2)
    rig.subscriber.onValue = { [unowned rig] in
      if $0 == 1 { for value in 3...6 { rig.source.send(value) } }
    }
    _ = rig.take()
    rig.subscription.request(.max(4))
    #expect(rig.take() == [.value(1), .value(2), .value(3), .value(4)])
    rig.subscription.request(.unlimited)
    #expect(rig.take() == [.value(5), .value(6)])
  }

  @Test func cancellationDropsEverything() {
    let rig = makeRig()
    rig.source.send(1)
    rig.subscription.cancel()
    rig.subscription.cancel()
    rig.subscription.request(.max(1))
    rig.source.send(2)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.requested(.unlimited), .subscription("Buffer"), .cancelled])
  }

  @Test func cancellingWithinAValueDropsTheRest() {
    let rig = makeRig()
    rig.source.send(1)
    rig.source.send(2)
    rig.subscriber.onValue = { [unowned rig] _ in rig.subscription.cancel() }
    _ = rig.take()
    rig.subscription.request(.unlimited)
    #expect(rig.take() == [.value(1), .cancelled])
  }

  @Test func cancelsASecondSubscription() {
    let rig = makeRig()
    rig.source.sendSubscription()
    #expect(rig.take() == [.requested(.unlimited), .subscription("Buffer"), .cancelled])
  }

  @Test func withoutRoomNothingPasses() {
    let rig = makeRig(size: 0, demand: .unlimited)
    rig.source.send(1)
    #expect(rig.take() == [.requested(.unlimited), .subscription("Buffer")])
  }

  @Test func aMillionValuesOneByOneTakeLinearTimeAndConstantStack() {
    let count = 200_000
    let buffer = (0..<count).publisher.buffer(size: count, prefetch: .byRequest, whenFull: .dropNewest)
    let subscriber = TrackingSubscriber<Int, Never>(.max(1), perValue: .max(1))
    buffer.subscribe(subscriber)
    #expect(subscriber.history.events.count == count + 2)
    #expect(subscriber.history.events.last == .finished)
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.buffer(size: 5, prefetch: .keepFull, whenFull: .dropNewest) }
  }

  @Test func showsWhatItHolds() {
    let rig = makeRig()
    rig.source.send(1)
    let mirror = Mirror(reflecting: rig.subscription)
    #expect(mirror.children.map(\.label) == ["values", "state", "downstreamDemand", "terminal"])
    #expect(mirror.children.first?.value as? [Int] == [1])
  }

  @Test func sendingAndRequestingMayRace() async {
    for _ in 0..<50 {
      let subject = UncheckedBox(PassthroughSubject<Int, Never>())
      let subscriber = UncheckedBox(TrackingSubscriber<Int, Never>())
      subject.value.buffer(size: 10_000, prefetch: .byRequest, whenFull: .dropNewest).subscribe(
        subscriber.value)
      async let sending: Void = { for value in 0..<1000 { subject.value.send(value) } }()
      async let requesting: Void = {
        for _ in 0..<1000 { subscriber.value.subscription?.request(.max(1)) }
      }()
      _ = await (sending, requesting)
      #expect(subscriber.value.history.events.dropFirst() == (0..<1000).map { .value($0) }[...])
    }
  }
}
