import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct FlatMapTests {
  typealias Child = ManualPublisher<Int, Oops>

  /// A child delivers without end while it has demand. It stops when the pipeline ends, in each way.
  @Test(arguments: End.allCases)
  func aChildWithoutEndStopsAtTheEnd(end: End) {
    let limit = 1_000
    var made = 0
    let numbers = AnySequence {
      AnyIterator {
        made += 1
        return made < limit ? made : nil
      }
    }
    let other = Child()
    let rig = Rig<Int, Oops, AnyPublisher<Int, Oops>> { source in
      source.flatMap { index in
        index == 0
          ? AnyPublisher(other) : AnyPublisher(numbers.publisher.setFailureType(to: Oops.self))
      }.prefix { end != .finish || $0 < 3 }.eraseToAnyPublisher()
    }
    rig.subscriber.onValue = { [unowned rig] value in
      guard value == 3, end != .finish else { return }
      switch end {
      case .finish: break
      case .failure: other.send(completion: .failure(Oops()))
      case .cancel: rig.subscription.cancel()
      }
    }
    rig.source.send(0)
    rig.source.send(1)
    #expect(made < 10)
  }

  /// A source whose values pick one of some children.
  func makeRig(
    _ children: [Child], maxPublishers: Subscribers.Demand = .unlimited,
    demand: Subscribers.Demand? = .unlimited, perValue: Subscribers.Demand = .none
  ) -> Rig<Int, Oops, Publishers.FlatMap<Child, ManualPublisher<Int, Oops>>> {
    Rig(demand: demand, perValue: perValue) { $0.flatMap(maxPublishers: maxPublishers) { children[$0] } }
  }

  @Test func isKnownDownstreamBeforeUpstreamIsAsked() {
    let rig = makeRig([], maxPublishers: .max(2), demand: .max(3))
    #expect(rig.take() == [.subscription("FlatMap"), .requested(.max(2))])
  }

  @Test func withUnlimitedDemandChildrenAreAskedForEverything() {
    let children = [Child(), Child()]
    let rig = makeRig(children)
    rig.source.send(0)
    rig.source.send(1)
    for child in children { #expect(child.history.take() == [.requested(.unlimited)]) }
    _ = rig.take()
    #expect(children[0].send(10) == .none)
    children[1].send(20)
    children[0].send(11)
    #expect(rig.take() == [.value(10), .value(20), .value(11)])
  }

  @Test func withLimitedDemandEachChildHasOneValueUnderWay() {
    let children = [Child(), Child()]
    let rig = makeRig(children, demand: .max(1))
    rig.source.send(0)
    rig.source.send(1)
    for child in children { #expect(child.history.take() == [.requested(.max(1))]) }
    _ = rig.take()
    #expect(children[0].send(10) == .max(1))
    #expect(children[0].send(11) == .none)
    #expect(children[1].send(20) == .none)
    #expect(rig.take() == [.value(10)])
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.value(11)])
    #expect(children[0].history.take() == [.requested(.max(1))])
    #expect(children[1].history.take() == [])
    rig.subscription.request(.unlimited)
    #expect(rig.take() == [.value(20)])
    #expect(children[0].history.take() == [.requested(.unlimited)])
    #expect(children[1].history.take().last == .requested(.unlimited))
  }

  @Test func asksForOneMorePublisherWhenOneFinishes() {
    let children = [Child(), Child()]
    let rig = makeRig(children, maxPublishers: .max(1))
    _ = rig.take()
    #expect(rig.source.send(0) == .none)
    children[0].send(completion: .finished)
    children[0].send(9)
    #expect(rig.take() == [.requested(.max(1))])
  }

  @Test func aPublisherKeepsItsRoomUntilItsValuesAreDelivered() {
    let children = [Child(), Child(), Child()]
    let rig = makeRig(children, maxPublishers: .max(2), demand: nil)
    #expect(rig.take() == [.subscription("FlatMap"), .requested(.max(2))])
    rig.source.send(0)
    rig.source.send(1)
    children[0].send(1)
    children[0].send(completion: .finished)
    #expect(rig.take() == [])
    children[1].send(completion: .finished)
    #expect(rig.take() == [.requested(.max(1))])
    rig.source.send(2)
    children[2].send(2)
    #expect(rig.take() == [])
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.value(1), .requested(.max(1))])
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.value(2)])
    #expect(children[2].history.take() == [.requested(.max(1)), .requested(.max(1))])
  }

  @Test func aPublisherThatEndsWithinADeliveryKeepsItsRoomUntilItsTurn() {
    let children = [Child(), Child()]
    let rig = makeRig(children, maxPublishers: .max(2))
    rig.source.send(0)
    rig.source.send(1)
    _ = rig.take()
    rig.subscriber.onValue = { [unowned rig] in
      guard $0 == 1 else { return }
      children[1].send(2)
      children[1].send(3)
      children[1].send(completion: .finished)
      #expect(rig.take() == [.value(1)])
    }
    children[0].send(1)
    #expect(rig.take() == [.value(2), .value(3), .requested(.max(1))])
  }

  @Test(arguments: [1, 3])
  func aSourceWithoutEndWaitsForDemand(room: Int) {
    var made = 0
    let numbers = AnySequence {
      AnyIterator {
        made += 1
        return made < 1_000 ? made : nil
      }
    }
    let subscriber = TrackingSubscriber<Int, Never>()
    numbers.publisher.flatMap(maxPublishers: .max(room)) { Just($0) }.subscribe(subscriber)
    // The sequence's publisher fetches one element ahead.
    #expect(made <= room + 1)
    for number in 1...100 {
      subscriber.subscription?.request(.max(1))
      #expect(made <= room + 1 + number)
    }
    #expect(subscriber.history.events.dropFirst() == (1...100).map { .value($0) }[...])
    subscriber.subscription?.cancel()
  }

  @Test func finishesWhenAllHaveFinishedAndNothingWaits() {
    let children = [Child()]
    let rig = makeRig(children, demand: .max(1))
    rig.source.send(0)
    children[0].send(1)
    children[0].send(2)
    _ = rig.take()
    rig.source.send(completion: .finished)
    children[0].send(completion: .finished)
    #expect(rig.take() == [])
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.value(2), .finished])
  }

  @Test func finishesAtOnceWithoutChildren() {
    let rig = makeRig([], demand: nil)
    _ = rig.take()
    rig.source.send(completion: .finished)
    rig.source.send(completion: .failure(Oops()))
    #expect(rig.take() == [.finished])
  }

  @Test func aFailingChildEndsEverything() {
    let children = [Child(), Child()]
    let rig = makeRig(children)
    rig.source.send(0)
    rig.source.send(1)
    _ = rig.take()
    children[0].send(completion: .failure(Oops(number: 1)))
    children[1].send(5)
    children[1].send(completion: .failure(Oops(number: 2)))
    rig.source.send(0)
    #expect(rig.take() == [.cancelled, .failed(Oops(number: 1))])
    #expect(children[0].history.events == [.requested(.unlimited)])
    #expect(children[1].history.events == [.requested(.unlimited), .cancelled])
  }

  @Test func aFailureUpstreamCancelsTheChildren() {
    let children = [Child()]
    let rig = makeRig(children)
    rig.source.send(0)
    _ = rig.take()
    rig.source.send(completion: .failure(Oops(number: 1)))
    #expect(rig.take() == [.failed(Oops(number: 1))])
    #expect(children[0].history.events == [.requested(.unlimited), .cancelled])
  }

  @Test func cancellationEndsEverything() {
    let children = [Child()]
    let rig = makeRig(children)
    rig.source.send(0)
    _ = rig.take()
    rig.subscription.cancel()
    rig.subscription.cancel()
    children[0].send(1)
    children[0].send(completion: .finished)
    rig.source.send(0)
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.cancelled])
    #expect(children[0].history.events == [.requested(.unlimited), .cancelled])
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

  @Test(arguments: [Subscribers.Demand.unlimited, .max(1)])
  func manyPublishersNeedNoMoreStackThanOne(maxPublishers: Subscribers.Demand) {
    var sum = 0
    let subscription = (1...300_000).publisher
      .flatMap(maxPublishers: maxPublishers) { Just($0) }.sink { sum += $0 }
    #expect(sum == 45_000_150_000)
    subscription.cancel()
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.flatMap { Just($0).setFailureType(to: Oops.self) } }
  }

  @Test func cancellationReleasesChildrenThatGoOn() {
    var isReleased = false
    weak var child: PassthroughSubject<Int, Oops>?
    do {
      let subject = PassthroughSubject<Int, Oops>()
      child = subject
      let rig = Rig(demand: .max(1)) { $0.flatMap { _ in subject } }
      rig.subscriber.onDeinit = { isReleased = true }
      rig.source.send(1)
      rig.subscription.cancel()
    }
    #expect(isReleased)
    #expect(child == nil)
  }

  @Test func childrenMaySendFromManyThreads() async {
    let subjects = UncheckedBox((0..<4).map { _ in PassthroughSubject<Int, Never>() })
    var perSender = [0, 0, 0, 0]
    var disorder = 0
    let subscription = (0..<4).publisher.flatMap { subjects.value[$0] }.sink { value in
      if perSender[value / 10_000] != value % 10_000 { disorder += 1 }
      perSender[value / 10_000] += 1
    }
    await withTaskGroup(of: Void.self) { group in
      for sender in 0..<4 {
        group.addTask { for number in 0..<2000 { subjects.value[sender].send(sender * 10_000 + number) } }
      }
    }
    #expect(perSender == [2000, 2000, 2000, 2000])
    #expect(disorder == 0)
    subscription.cancel()
  }

  @Test(arguments: [Subscribers.Demand.unlimited, .max(9)])
  func aFailureWithinAValueComesAfterIt(demand: Subscribers.Demand) {
    let children = [Child(), Child()]
    let rig = makeRig(children, demand: demand)
    rig.source.send(0)
    rig.source.send(1)
    _ = rig.take()
    var isBusy = false
    rig.subscriber.onValue = { _ in
      isBusy = true
      children[1].send(completion: .failure(Oops(number: 3)))
      children[0].send(8)
      isBusy = false
    }
    rig.subscriber.onCompletion = { #expect(!isBusy) }
    children[0].send(7)
    #expect(rig.take() == [.value(7), .cancelled, .failed(Oops(number: 3))])
    #expect(children[0].history.events.last == .cancelled)
    #expect(children[1].history.events.last != .cancelled)
  }

  @Test func cancellingWithinTheTransformIsTheEnd() {
    let child = Child()
    let rig = Rig<Int, Oops, AnyPublisher<Int, Oops>>(demand: nil) { $0.eraseToAnyPublisher() }
    let subscriber = TrackingSubscriber<Int, Oops>(.unlimited, history: rig.history)
    let source = Child(history: rig.history)
    source.flatMap { _ in
      subscriber.subscription?.cancel()
      return child
    }.subscribe(subscriber)
    _ = rig.take()
    source.send(1)
    #expect(rig.take() == [.cancelled])
    #expect(child.subscriber == nil)
    subscriber.subscription = nil
  }

  @Test func placesOfChildrenThatHaveEndedServeOthers() {
    let children = (0..<12).map { _ in Child() }
    let rig = makeRig(children)
    for number in 0..<6 { rig.source.send(number) }
    for number in [4, 1, 2] { children[number].send(completion: .finished) }
    for number in 6..<12 { rig.source.send(number) }
    _ = rig.take()
    for number in 0..<12 { children[number].send(number) }
    #expect(rig.take() == [0, 3, 5, 6, 7, 8, 9, 10, 11].map { .value($0) })
    rig.source.send(completion: .finished)
    for number in 5..<12 { children[number].send(completion: .finished) }
    children[3].send(completion: .finished)
    #expect(rig.take() == [])
    children[0].send(completion: .finished)
    #expect(rig.take() == [.finished])
  }

}
