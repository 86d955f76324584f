import ReactiveCore
import ReactiveTestSupport
import Synchronization
import Testing

@Suite struct ConcatenateTests {
  typealias Source = ManualPublisher<Int, Oops>

  static func chain(_ s: [Source]) -> Publishers.Concatenate<Source, Source> { s[0].append(s[1]) }

  /// Any number of sources, one after the other, each appended to the publisher so far with its type hidden.
  static func nested(_ s: [Source]) -> AnyPublisher<Int, Oops> {
    s.dropFirst().reduce(s[0].eraseToAnyPublisher()) { $0.append($1).eraseToAnyPublisher() }
  }

  /// The same, nested in the other direction.
  static func nestedFromBehind(_ s: [Source]) -> AnyPublisher<Int, Oops> {
    s.dropLast().reversed().reduce(s[s.count - 1].eraseToAnyPublisher()) {
      $0.prepend($1).eraseToAnyPublisher()
    }
  }

  @Test func deliversTheSecondAfterTheFirst() {
    let rig = CombiningRig(demand: .max(10), Self.chain)
    #expect(rig.take() == [.subscription("Concatenate")])
    #expect(rig.askedAll() == [[.requested(.max(10))], []])
    rig.subscriber.demandPerValue = .max(1)
    for value in 1...3 { #expect(rig.sources[0].send(value) == .max(1)) }
    rig.sources[0].send(completion: .finished)
    #expect(rig.take() == [.value(1), .value(2), .value(3)])
    #expect(rig.askedAll() == [[], [.requested(.max(10))]])
    #expect(rig.sources[1].send(4) == .max(1))
    rig.sources[1].send(completion: .finished)
    rig.sources[1].send(5)
    rig.sources[1].send(completion: .finished)
    #expect(rig.take() == [.value(4), .finished])
  }

  @Test func theSecondIsAskedForWhatTheFirstLeaves() {
    let rig = CombiningRig(demand: .max(3), Self.chain)
    rig.sources[0].send(1)
    rig.subscription.request(.max(2))
    rig.sources[0].send(completion: .finished)
    rig.subscription.request(.unlimited)
    #expect(
      rig.askedAll() == [
        [.requested(.max(3)), .requested(.max(2))], [.requested(.max(4)), .requested(.unlimited)],
      ])
  }

  @Test func theSecondIsNotAskedWithoutDemand() {
    let rig = CombiningRig(demand: .max(1), Self.chain)
    rig.sources[0].send(1)
    rig.sources[0].send(2)
    rig.sources[0].send(completion: .finished)
    #expect(rig.take() == [.subscription("Concatenate"), .value(1)])
    #expect(rig.asked(1) == [])
    rig.subscription.request(.max(2))
    #expect(rig.askedAll() == [[.requested(.max(1))], [.requested(.max(2))]])
  }

  @Test func aFailureOfTheFirstEndsIt() {
    let rig = CombiningRig(Self.chain)
    rig.sources[0].send(completion: .failure(Oops(number: 1)))
    rig.sources[0].send(completion: .failure(Oops(number: 2)))
    rig.sources[0].send(1)
    #expect(rig.take() == [.subscription("Concatenate"), .failed(Oops(number: 1))])
    #expect(rig.sources[1].subscriber == nil)
    #expect(rig.askedAll() == [[.requested(.unlimited)], []])
  }

  @Test func aFailureOfTheSecondPasses() {
    let rig = CombiningRig(Self.chain)
    rig.sources[0].send(completion: .finished)
    rig.sources[1].send(completion: .failure(Oops(number: 1)))
    #expect(rig.take() == [.subscription("Concatenate"), .failed(Oops(number: 1))])
  }

  @Test(arguments: [false, true])
  func cancellationCancelsTheOneUnderWay(isInSecond: Bool) {
    let rig = CombiningRig(Self.chain)
    if isInSecond { rig.sources[0].send(completion: .finished) }
    _ = (rig.take(), rig.askedAll())
    rig.subscription.cancel()
    rig.subscription.cancel()
    let source = rig.sources[isInSecond ? 1 : 0]
    source.send(1)
    source.send(completion: .finished)
    rig.subscription.request(.max(1))
    #expect(rig.take() == [])
    #expect(rig.askedAll() == (isInSecond ? [[], [.cancelled]] : [[.cancelled], []]))
  }

  @Test func cancellingOnSubscriptionSubscribesToNothing() {
    let sources = [Source(), Source()]
    let subscriber = TrackingSubscriber<Int, Oops>()
    subscriber.onSubscription = { $0.cancel() }
    Self.chain(sources).subscribe(subscriber)
    #expect(sources[0].subscriber == nil)
    #expect(subscriber.history.take() == [.subscription("Concatenate")])
  }

  @Test func cancelsSecondSubscriptions() {
    let rig = CombiningRig(Self.chain)
    rig.sources[0].sendSubscription()
    #expect(rig.askedAll() == [[.requested(.unlimited), .cancelled], []])
  }

  @Test func cancelsASubscriptionThatComesAfterCancellation() {
    let rig = CombiningRig(subscribingAtOnce: false, Self.chain)
    rig.subscription.cancel()
    rig.sources[0].sendSubscription()
    #expect(rig.askedAll() == [[.cancelled], []])
  }

  @Test func valuesSentWithinAValuePassWhileThereIsDemand() {
    let rig = CombiningRig(demand: .max(3), Self.chain)
    rig.subscriber.onValue = { [unowned rig] in
      if $0 < 10 { rig.sources[0].send($0 + 1) }
    }
    rig.sources[0].send(1)
    #expect(rig.take() == [.subscription("Concatenate"), .value(1), .value(2), .value(3)])
  }

  @Test(arguments: [nested, nestedFromBehind])
  func aChainIsOneAfterTheOther(make: @Sendable ([Source]) -> AnyPublisher<Int, Oops>) {
    let rig = CombiningRig(of: 4, demand: .max(6), make)
    #expect(rig.take() == [.subscription("Concatenate")])
    for index in 0..<4 {
      #expect(rig.askedAll() == (0..<4).map { $0 == index ? [.requested(.max(6 - index))] : [] })
      rig.sources[index].send(index)
      #expect(rig.take() == [.value(index)])
      rig.sources[index].send(completion: .finished)
    }
    #expect(rig.take() == [.finished])
    let cancelled = CombiningRig(of: 4, make)
    cancelled.sources[0].send(completion: .finished)
    cancelled.subscription.cancel()
    cancelled.sources[1].send(completion: .finished)
    #expect(
      cancelled.askedAll() == [[.requested(.unlimited)], [.requested(.unlimited), .cancelled], [], []])
  }

  @Test(arguments: [nested, nestedFromBehind])
  func releasesAChain(make: @Sendable ([Source]) -> AnyPublisher<Int, Oops>) {
    expectCombinationReleased(of: 3, sending: [0], make)
  }

  @Test(arguments: [Subscribers.Demand.unlimited, .max(1)])
  func chainsOfTenThousandNeedNoMoreStackThanOne(demand: Subscribers.Demand) {
    let count = 10_000
    let appended = (1..<count).reduce(Just(0).eraseToAnyPublisher()) {
      $0.append(Just($1)).eraseToAnyPublisher()
    }
    let prepended = (1..<count).reversed().reduce(Just(count).eraseToAnyPublisher()) {
      $0.prepend(Just($1)).eraseToAnyPublisher()
    }
    let late = PassthroughSubject<Int, Never>()
    for publisher in [appended, prepended, appended.prepend(late).append(prepended).eraseToAnyPublisher()] {
      var values = 0
      var isFinished = false
      publisher.subscribe(
        AnySubscriber(
          receiveSubscription: { $0.request(demand) },
          receiveValue: { _ in
            values += 1
            return demand == .unlimited ? .none : demand
          }, receiveCompletion: { _ in isFinished = true }))
      if values == 0 { late.send(completion: .finished) }
      #expect(values == count || values == 2 * count)
      #expect(isFinished)
    }
  }

  @Test func knowsItsParts() {
    let publisher = Source()
    #expect(publisher.append(2, 3).suffix.sequence == [2, 3])
    #expect(publisher.append(CollectionOfOne(4)).suffix.sequence.first == 4)
    #expect(publisher.prepend(2, 3).prefix.sequence == [2, 3])
    #expect(publisher.prepend(CollectionOfOne(4)).prefix.sequence.first == 4)
    #expect(Just(1).prepend(Just(2)) == Publishers.Concatenate(prefix: Just(2), suffix: Just(1)))
    #expect(Just(1).append(Just(2)) != Publishers.Concatenate(prefix: Just(2), suffix: Just(1)))
  }

  @Test func aSequenceWithMoreElementsIsASequence() {
    let sequence = [3, 4].publisher
    #expect(sequence.append(5, 6) == Publishers.Sequence(sequence: [3, 4, 5, 6]))
    #expect(sequence.append(5...6) == [3, 4, 5, 6].publisher)
    #expect(sequence.append([5].publisher) == [3, 4, 5].publisher)
    #expect(sequence.prepend(1, 2) == [1, 2, 3, 4].publisher)
    #expect(sequence.prepend(1...2) == [1, 2, 3, 4].publisher)
    #expect(sequence.prepend([2].publisher) == [2, 3, 4].publisher)
  }

  @Test func describesItself() {
    let rig = CombiningRig(demand: .max(7), Self.chain)
    #expect(rig.sources[0].subscriber?.description == "Concatenate")
    let children = Mirror(reflecting: rig.subscription).children
    #expect(children.first { $0.label == "demand" }?.value as? Subscribers.Demand == .max(7))
  }

  @Test func releasesEverything() {
    expectCombinationReleased(sending: [0], Self.chain)
  }

  @Test func requestsMayRaceWithTheChangeOfPublishers() async {
    for _ in 0..<300 {
      let subjects = UncheckedBox([PassthroughSubject<Int, Never>(), PassthroughSubject<Int, Never>()])
      let received = Atomic<Int>(0)
      let box = UncheckedBox(Subscriptions.holder())
      subjects.value[0].append(subjects.value[1]).subscribe(
        AnySubscriber(
          receiveSubscription: { box.value.subscription = $0 },
          receiveValue: { _ in
            received.add(1, ordering: .relaxed)
            return .none
          }))
      let subscription = UncheckedBox(box.value.subscription!)
      await withTaskGroup(of: Void.self) { group in
        group.addTask { for _ in 0..<10 { subscription.value.request(.max(1)) } }
        group.addTask { subjects.value[0].send(completion: .finished) }
      }
      for number in 0..<20 { subjects.value[1].send(number) }
      #expect(received.load(ordering: .relaxed) == 10)
    }
  }
}

private final class SubscriptionHolder {
  var subscription: (any Subscription)?
}

extension Subscriptions {
  fileprivate static func holder() -> SubscriptionHolder { SubscriptionHolder() }
}
