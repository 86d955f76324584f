import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct SwitchToLatestTests {
  typealias Child = ManualPublisher<Int, Oops>

  /// A source whose values pick one of some children.
  func makeRig(
    _ children: [Child], demand: Subscribers.Demand? = .unlimited, perValue: Subscribers.Demand = .none
  ) -> Rig<Int, Oops, AnyPublisher<Int, Oops>> {
    Rig(demand: demand, perValue: perValue) {
      $0.map { children[$0] }.switchToLatest().eraseToAnyPublisher()
    }
  }

  @Test func isKnownDownstreamBeforeUpstreamIsAskedForEverything() {
    let rig = makeRig([], demand: .max(3))
    #expect(rig.take() == [.subscription("SwitchToLatest"), .requested(.unlimited)])
  }

  @Test func followsTheLatestPublisher() {
    let children = [Child(), Child()]
    let rig = makeRig(children)
    _ = rig.take()
    #expect(rig.source.send(0) == .none)
    #expect(children[0].send(10) == .none)
    rig.source.send(1)
    children[0].send(11)
    children[0].send(completion: .failure(Oops()))
    children[1].send(20)
    #expect(rig.take() == [.value(10), .value(20)])
    #expect(children[0].history.events == [.requested(.unlimited), .cancelled])
    #expect(children[1].history.events == [.requested(.unlimited)])
  }

  @Test func eachPublisherIsAskedForWhatTheOthersHaveLeft() {
    let children = [Child(), Child(), Child()]
    let rig = makeRig(children, demand: nil, perValue: .max(5))
    rig.source.send(0)
    #expect(children[0].history.take() == [])
    rig.subscription.request(.max(1))
    #expect(children[0].history.take() == [.requested(.max(1))])
    children[0].send(completion: .finished)
    rig.subscription.request(.max(42))
    rig.source.send(1)
    #expect(children[0].history.take() == [])
    #expect(children[1].history.take() == [.requested(.max(43))])
    #expect(children[1].send(1) == .max(5))
    #expect(children[1].send(2) == .max(5))
    rig.source.send(2)
    #expect(children[1].history.take() == [.cancelled])
    #expect(children[2].history.take() == [.requested(.max(51))])
    rig.source.send(completion: .finished)
    rig.subscription.request(.max(9))
    #expect(children[2].history.take() == [.requested(.max(9))])
  }

  @Test func finishesWhenUpstreamAndTheLatestHave() {
    let children = [Child()]
    for isOuterFirst in [false, true] {
      let rig = makeRig(children)
      rig.source.send(0)
      _ = rig.take()
      if isOuterFirst {
        rig.source.send(completion: .finished)
        rig.source.send(0)
        children[0].send(1)
        #expect(rig.take() == [.value(1)])
        children[0].send(completion: .finished)
      } else {
        children[0].send(completion: .finished)
        #expect(rig.take() == [])
        rig.source.send(completion: .finished)
      }
      children[0].send(completion: .finished)
      rig.source.send(completion: .finished)
      #expect(rig.take() == [.finished])
    }
  }

  @Test func finishesAtOnceWithoutPublishers() {
    let rig = makeRig([], demand: nil)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.subscription("SwitchToLatest"), .requested(.unlimited), .finished])
  }

  @Test func waitsForAPublisherThatHasNotSentItsSubscription() {
    let child = Child()
    child.subscribesAtOnce = false
    let rig = makeRig([child])
    rig.source.send(0)
    _ = rig.take()
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    child.sendSubscription()
    child.send(1)
    child.send(completion: .finished)
    #expect(rig.take() == [.value(1), .finished])
  }

  @Test func aFailureOfTheLatestCancelsUpstream() {
    let children = [Child()]
    let rig = makeRig(children)
    rig.source.send(0)
    _ = rig.take()
    children[0].send(completion: .failure(Oops(number: 1)))
    children[0].send(completion: .finished)
    children[0].send(1)
    rig.source.send(0)
    #expect(rig.take() == [.cancelled, .failed(Oops(number: 1))])
    #expect(children[0].history.events == [.requested(.unlimited)])
  }

  @Test func aFailureUpstreamCancelsTheLatest() {
    let children = [Child()]
    let rig = makeRig(children)
    rig.source.send(0)
    _ = rig.take()
    rig.source.send(completion: .failure(Oops(number: 1)))
    #expect(rig.take() == [.failed(Oops(number: 1))])
    #expect(children[0].history.events == [.requested(.unlimited), .cancelled])
  }

  @Test func cancellationCancelsTheLatestThenUpstream() {
    let history = History()
    let child = Child(history: history)
    let rig = Rig(source: Child(history: history), demand: .max(42)) {
      $0.map { _ in child }.switchToLatest()
    }
    child.onCancel = { history.append(.value("inner")) }
    rig.source.send(0)
    _ = rig.take()
    rig.subscription.cancel()
    rig.subscription.cancel()
    child.send(1)
    rig.source.send(0)
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.cancelled, .value("inner"), .cancelled])
  }

  @Test func cancelsSecondSubscriptions() {
    let children = [Child()]
    let rig = makeRig(children)
    rig.source.send(0)
    _ = rig.take()
    rig.source.sendSubscription()
    children[0].sendSubscription()
    #expect(rig.take() == [.cancelled])
    #expect(children[0].history.events == [.requested(.unlimited), .cancelled])
    rig.subscription.cancel()
    rig.source.sendSubscription()
    #expect(rig.take() == [.cancelled, .cancelled])
  }

  @Test func cancellingFromWithinAValueStopsTheRest() {
    let children = [Child()]
    let rig = makeRig(children)
    rig.source.send(0)
    _ = rig.take()
    rig.subscriber.onValue = { [unowned rig] _ in rig.subscription.cancel() }
    children[0].send(1)
    children[0].send(2)
    #expect(rig.take() == [.value(1), .cancelled])
  }

  @Test func valuesSentWithinAValueComeAfterIt() {
    let children = [Child()]
    let rig = makeRig(children, demand: .max(1), perValue: .max(1))
    rig.source.send(0)
    _ = rig.take()
    var depth = 0
    rig.subscriber.onValue = { value in
      depth += 1
      #expect(depth == 1)
      if value < 3 { children[0].send(value + 1) }
      depth -= 1
    }
    children[0].send(1)
    #expect(rig.take() == [.value(1), .value(2), .value(3)])
  }

  @Test func whatIsWantedAfterAValueIsAskedOfThePublisherThatHasBecomeTheLatestDuringIt() {
    let children = [Child(), Child()]
    let rig = makeRig(children, demand: .max(1), perValue: .max(1))
    rig.source.send(0)
    rig.subscriber.onValue = { [unowned rig] in
      if $0 == 1 { rig.source.send(1) }
    }
    #expect(children[0].send(1) == .none)
    #expect(children[0].history.events == [.requested(.max(1)), .cancelled])
    #expect(children[1].history.events == [.requested(.max(1))])
    #expect(children[1].send(2) == .max(1))
  }

  @Test func aMillionPublishersNeedNoMoreStackThanOne() {
    var sum = 0
    let subscription = (1...1_000_000).publisher.map { Just($0) }.switchToLatest().sink { sum += $0 }
    #expect(sum == 500_000_500_000)
    subscription.cancel()
  }

  @Test func valuesOneByOne() {
    var values: [Int] = []
    (1..<4).publisher.map { ($0..<$0 + 3).publisher }.switchToLatest().subscribe(
      AnySubscriber(
        receiveSubscription: { $0.request(.max(1)) },
        receiveValue: {
          values.append($0)
          return .max(1)
        }))
    #expect(values == [1, 2, 3, 2, 3, 4, 3, 4, 5])
  }

  @Test func publishersThatCannotFailGoWithThoseThatCan() {
    // Deferred, since publishers of existing values have specialised types.
    typealias S = Publishers.SwitchToLatest
    typealias Risky = Publishers.SetFailureType<Deferred<Just<Int>>, Oops>
    let safe = Deferred { Just(1) }
    let risky = Deferred { Just(2) }.setFailureType(to: Oops.self)
    typealias OfRisky = Deferred<Just<Risky>>
    let first = Deferred { Just(risky) }.switchToLatest()
    #expect(type(of: first) == S<Risky, Publishers.SetFailureType<OfRisky, Oops>>.self)
    typealias OfSafe = Deferred<Just<Deferred<Just<Int>>>>
    let second = Deferred { Just(safe) }.switchToLatest()
    #expect(type(of: second) == S<Deferred<Just<Int>>, OfSafe>.self)
    let third = Deferred { Just(safe) }.setFailureType(to: Oops.self).switchToLatest()
    typealias Mapped = Publishers.Map<Publishers.SetFailureType<OfSafe, Oops>, Risky>
    #expect(type(of: third) == S<Risky, Mapped>.self)
    var values: [Int] = []
    _ = first.sink { _ in
    } receiveValue: {
      values.append($0)
    }
    _ = second.sink { values.append($0) }
    _ = third.sink { _ in
    } receiveValue: {
      values.append($0)
    }
    #expect(values == [2, 1, 1])
  }

  @Test func comparesAndDescribesItself() {
    #expect(Just(Just(1)).switchToLatest() == Publishers.SwitchToLatest(upstream: Just(Just(1))))
    let child = Child()
    let rig = makeRig([child])
    rig.source.send(0)
    #expect(child.subscriber?.description == "SwitchToLatest")
    #expect(child.subscriber?.customMirror.children.first?.label == "parentSubscription")
  }

  @Test func stopsTheProgramOnARequestForNothing() async {
    await #expect(processExitsWith: .failure) {
      SwitchToLatestTests().makeRig([], demand: Subscribers.Demand.none).source.send(completion: .finished)
    }
  }

  @Test func ignoresAValueThatWasNotAskedFor() {
    let child = Child()
    let rig = makeRig([child], demand: nil)
    rig.source.send(0)
    _ = rig.take()
    #expect(child.send(1) == .none)
    #expect(rig.take() == [])
    rig.subscription.request(.max(1))
    child.send(2)
    #expect(rig.take() == [.value(2)])
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.map { Just($0).setFailureType(to: Oops.self) }.switchToLatest() }
  }

  @Test func cancellationReleasesAPublisherThatGoesOn() {
    weak var child: PassthroughSubject<Int, Oops>?
    do {
      let subject = PassthroughSubject<Int, Oops>()
      child = subject
      let rig = Rig(demand: .max(1)) { $0.map { _ in subject }.switchToLatest() }
      rig.source.send(1)
      rig.subscription.cancel()
      rig.source.forget()
    }
    #expect(child == nil)
  }

  @Test(arguments: [Subscribers.Demand.unlimited, .max(1)])
  func switchingMayRaceWithValues(demand: Subscribers.Demand) async {
    let outer = UncheckedBox(PassthroughSubject<PassthroughSubject<Int, Never>, Never>())
    let children = UncheckedBox((0..<4).map { _ in PassthroughSubject<Int, Never>() })
    var isInside = false
    var disorder = 0
    var last = -1
    var completions = 0
    outer.value.switchToLatest().subscribe(
      AnySubscriber(
        receiveSubscription: { $0.request(demand) },
        receiveValue: { value in
          if isInside || completions > 0 { disorder += 1 }
          isInside = true
          last = value
          isInside = false
          return demand == .unlimited ? .none : .max(1)
        }, receiveCompletion: { _ in completions += 1 }))
    await withTaskGroup(of: Void.self) { group in
      group.addTask { for round in 0..<2000 { outer.value.send(children.value[round % 4]) } }
      for sender in 0..<4 {
        group.addTask { for number in 0..<2000 { children.value[sender].send(number) } }
      }
    }
    // No demand was lost in between.
    outer.value.send(children.value[0])
    for number in 5000..<5003 {
      children.value[0].send(number)
      #expect(last == number)
    }
    outer.value.send(completion: .finished)
    children.value[0].send(completion: .finished)
    #expect(disorder == 0)
    #expect(completions == 1)
  }
}
