import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct MergeTests {
  typealias Source = ManualPublisher<Int, Oops>

  /// A merge of two to eight sources, made of pairs or all at once.
  static func merge(_ s: [Source]) -> AnyPublisher<Int, Oops> {
    switch s.count {
    case 2: Publishers.Merge(s[0], s[1]).eraseToAnyPublisher()
    case 3: s[0].merge(with: s[1], s[2]).eraseToAnyPublisher()
    case 4: s[0].merge(with: s[1], s[2], s[3]).eraseToAnyPublisher()
    case 5: s[0].merge(with: s[1], s[2], s[3], s[4]).eraseToAnyPublisher()
    case 6: s[0].merge(with: s[1], s[2], s[3], s[4], s[5]).eraseToAnyPublisher()
    case 7: s[0].merge(with: s[1], s[2], s[3], s[4], s[5], s[6]).eraseToAnyPublisher()
    default: s[0].merge(with: s[1], s[2], s[3], s[4], s[5], s[6], s[7]).eraseToAnyPublisher()
    }
  }

  @Test(arguments: 2...8)
  func passesOnWhatAllDeliver(count: Int) {
    let rig = CombiningRig(of: count, Self.merge)
    #expect(rig.take() == [.subscription("Merge")])
    #expect(rig.askedAll() == Array(repeating: [.requested(.unlimited)], count: count))
    for index in (0..<count).reversed() { #expect(rig.sources[index].send(index) == .none) }
    #expect(rig.take() == (0..<count).reversed().map { .value($0) })
    for index in 0..<(count - 1) { rig.sources[index].send(completion: .finished) }
    #expect(rig.take() == [])
    rig.sources[count - 1].send(9)
    rig.sources[count - 1].send(completion: .finished)
    #expect(rig.take() == [.value(9), .finished])
  }

  @Test func withLimitedDemandEachUpstreamHasOneValueUnderWay() {
    let rig = CombiningRig(demand: nil, Self.merge)
    #expect(rig.askedAll() == [[.requested(.max(1))], [.requested(.max(1))]])
    rig.subscription.request(.max(1))
    #expect(rig.sources[0].send(1) == .max(1))
    #expect(rig.sources[0].send(2) == .none)
    #expect(rig.sources[1].send(3) == .none)
    #expect(rig.take() == [.subscription("Merge"), .value(1)])
    #expect(rig.askedAll() == [[], []])
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.value(2)])
    #expect(rig.askedAll() == [[.requested(.max(1))], []])
    rig.subscription.request(.unlimited)
    #expect(rig.take() == [.value(3)])
    #expect(rig.askedAll() == [[.requested(.unlimited)], [.requested(.unlimited)]])
    #expect(rig.sources[0].send(4) == .none)
    #expect(rig.take() == [.value(4)])
  }

  @Test func aSecondValueThatWasNotAskedForReplacesTheFirst() {
    let rig = CombiningRig(demand: .max(1), Self.merge)
    for value in [100, 200, 300] { rig.sources[0].send(value) }
    rig.subscription.request(.max(2))
    #expect(rig.take() == [.subscription("Merge"), .value(100), .value(300)])
  }

  @Test func neverDeliversMoreThanIsAskedFor() {
    let rig = CombiningRig(demand: .max(1), perValue: .max(1), Self.merge)
    #expect(rig.sources[0].send(1) == .max(1))
    rig.subscriber.demandPerValue = .none
    #expect(rig.sources[1].send(2) == .max(1))
    #expect(rig.sources[1].send(3) == .none)
    #expect(rig.take() == [.subscription("Merge"), .value(1), .value(2)])
  }

  @Test func aRequestFromWithinAValueCounts() {
    let rig = CombiningRig(demand: .max(1), Self.merge)
    rig.subscriber.onValue = { [unowned rig] _ in rig.subscription.request(.max(1)) }
    for value in 1...3 { #expect(rig.sources[value % 2].send(value) == .max(1)) }
    #expect(rig.take() == [.subscription("Merge"), .value(1), .value(2), .value(3)])
    #expect(rig.askedAll() == [[.requested(.max(1))], [.requested(.max(1))]])
  }

  @Test func finishesWhenAllHaveAndNothingWaits() {
    let rig = CombiningRig(demand: nil, Self.merge)
    rig.sources[0].send(1)
    for source in rig.sources { source.send(completion: .finished) }
    #expect(rig.take() == [.subscription("Merge")])
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.value(1), .finished])
    for source in rig.sources { source.send(completion: .finished) }
    rig.sources[0].send(2)
    #expect(rig.take() == [])
  }

  @Test func aFailureCancelsAllAndNeedsNoDemand() {
    let rig = CombiningRig(of: 3, demand: nil, Self.merge)
    rig.sources[0].send(1)
    rig.sources[2].send(completion: .finished)
    _ = rig.askedAll()
    rig.sources[1].send(completion: .failure(Oops(number: 1)))
    rig.sources[0].send(2)
    rig.sources[0].send(completion: .failure(Oops(number: 2)))
    #expect(rig.take() == [.subscription("Merge"), .failed(Oops(number: 1))])
    #expect(rig.askedAll() == [[.cancelled], [.cancelled], []])
  }

  @Test func cancellationCancelsAll() {
    let rig = CombiningRig(of: 3, Self.merge)
    _ = (rig.take(), rig.askedAll())
    rig.subscription.cancel()
    rig.subscription.cancel()
    rig.sources[0].send(1)
    for source in rig.sources { source.send(completion: .finished) }
    rig.subscription.request(.max(1))
    #expect(rig.take() == [])
    #expect(rig.askedAll() == [[.cancelled], [.cancelled], [.cancelled]])
  }

  @Test func cancellingFromWithinAValueStopsTheRest() {
    let rig = CombiningRig(Self.merge)
    rig.subscriber.onValue = { [unowned rig] _ in
      rig.subscription.cancel()
      rig.sources[1].send(2)
    }
    rig.sources[0].send(1)
    rig.sources[0].send(3)
    #expect(rig.take() == [.subscription("Merge"), .value(1)])
  }

  @Test func cancelsUpstreamsThatComeAfterCancellation() {
    let rig = CombiningRig(subscribingAtOnce: false, Self.merge)
    rig.subscription.cancel()
    for source in rig.sources { source.sendSubscription() }
    #expect(rig.askedAll() == [[.cancelled], [.cancelled]])
  }

  @Test func cancelsSecondSubscriptions() {
    let rig = CombiningRig(Self.merge)
    _ = rig.askedAll()
    rig.sources[1].sendSubscription()
    #expect(rig.askedAll() == [[], [.cancelled]])
    rig.sources[1].send(completion: .finished)
    rig.sources[1].sendSubscription()
    #expect(rig.askedAll() == [[], [.cancelled]])
  }

  @Test(arguments: [Subscribers.Demand.unlimited, .max(9)])
  func whatIsSentWithinAValueComesAfterIt(demand: Subscribers.Demand) {
    let rig = CombiningRig(demand: demand, Self.merge)
    var depth = 0
    rig.subscriber.onValue = { [unowned rig] value in
      depth += 1
      #expect(depth == 1)
      if value < 3 { rig.sources[1].send(value + 1) }
      if value == 2 { for source in rig.sources { source.send(completion: .finished) } }
      depth -= 1
    }
    rig.sources[0].send(1)
    #expect(rig.take() == [.subscription("Merge"), .value(1), .value(2), .value(3), .finished])
  }

  @Test func upstreamsThatFinishAtOnce() {
    let rig = CombiningRig(of: 1) { Empty().merge(with: Just(1).setFailureType(to: Oops.self), $0[0]) }
    rig.sources[0].send(completion: .finished)
    #expect(rig.take() == [.subscription("Merge"), .value(1), .finished])
  }

  @Test func mergingAMergeGivesOneMerge() {
    let a = Just(1)
    let b = Just(2).eraseToAnyPublisher()
    let c = [3].publisher
    typealias M = Publishers
    let two = a.merge(with: b)
    #expect(type(of: two) == M.Merge<Just<Int>, AnyPublisher<Int, Never>>.self)
    #expect("\(type(of: two.merge(with: c)))".hasPrefix("Merge3<"))
    #expect("\(type(of: two.merge(with: c, a, b, c, a, b)))".hasPrefix("Merge8<"))
    #expect("\(type(of: two.merge(with: c, a).merge(with: b, c, a, b)))".hasPrefix("Merge8<"))
    #expect("\(type(of: two.merge(with: c, a, b).merge(with: c, a)))".hasPrefix("Merge7<"))
    #expect("\(type(of: two.merge(with: c, a, b, a).merge(with: c, a)))".hasPrefix("Merge8<"))
    let eight = two.merge(with: c, a, b, a, c).merge(with: b)
    #expect("\(type(of: eight))".hasPrefix("Merge8<"))
    var values: [Int] = []
    _ = eight.sink { values.append($0) }
    #expect(values == [1, 2, 3, 1, 2, 1, 3, 2])
  }

  @Test func comparesItsUpstreams() {
    let c = Empty<Int, Never>()
    #expect(Just(1).merge(with: c) == Publishers.Merge(Just(1), c))
    #expect(Just(1).merge(with: c) != Publishers.Merge(Just(2), c))
    #expect(
      Just(1).merge(with: c, Just(2), c, c, c, c, Just(3))
        != Just(1).merge(with: c, Just(2), c, c, c, c, Just(4)))
  }

  @Test func describesItself() {
    let rig = CombiningRig(Self.merge)
    #expect(rig.sources[0].subscriber?.description == "Merge")
    #expect(rig.sources[0].subscriber?.customMirror.children.first?.label == "parentSubscription")
    #expect(Mirror(reflecting: rig.subscription).children.isEmpty)
  }

  @Test func releasesEverything() {
    expectCombinationReleased(Self.merge)
    expectCombinationReleased(sending: [0, 1], demand: .max(5), Self.merge)
  }

  @Test(arguments: [Subscribers.Demand.unlimited, .max(1)])
  func upstreamsMaySendFromManyThreads(demand: Subscribers.Demand) async {
    let subjects = UncheckedBox((0..<4).map { _ in PassthroughSubject<Int, Never>() })
    let s = subjects.value
    var perSender = [0, 0, 0, 0]
    var disorder = 0
    var isInside = false
    var completions = 0
    let merged = s[0].merge(with: s[1], s[2], s[3])
    merged.subscribe(
      AnySubscriber(
        receiveSubscription: { $0.request(demand) },
        receiveValue: { value in
          if isInside || completions > 0 { disorder += 1 }
          isInside = true
          // With limited demand, the subjects drop values that aren't requested.
          if perSender[value / 10_000] > value % 10_000 { disorder += 1 }
          perSender[value / 10_000] = value % 10_000 + 1
          isInside = false
          return demand == .unlimited ? .none : .max(1)
        }, receiveCompletion: { _ in completions += 1 }))
    await withTaskGroup(of: Void.self) { group in
      for sender in 0..<4 {
        group.addTask {
          for number in 0..<2000 { subjects.value[sender].send(sender * 10_000 + number) }
          subjects.value[sender].send(completion: .finished)
        }
      }
    }
    if demand == .unlimited { #expect(perSender == [2000, 2000, 2000, 2000]) }
    #expect(disorder == 0)
    #expect(completions == 1)
  }

  @Test func failureAndCancellationMayRaceWithValues() async {
    for round in 0..<300 {
      let subjects = UncheckedBox((0..<2).map { _ in PassthroughSubject<Int, Oops>() })
      let tracker = TrackingSubscriber<Int, Oops>(.unlimited)
      do {
        Publishers.Merge(subjects.value[0], subjects.value[1]).subscribe(tracker)
        let subscription = UncheckedBox(tracker.subscription!)
        await withTaskGroup(of: Void.self) { group in
          group.addTask { for number in 0..<50 { subjects.value[0].send(number) } }
          group.addTask {
            if round.isMultiple(of: 2) {
              subjects.value[1].send(completion: .failure(Oops()))
            } else {
              subscription.value.cancel()
            }
          }
        }
      }
      let events = tracker.history.take()
      if round.isMultiple(of: 2) {
        #expect(events.last == .failed(Oops()))
        #expect(events.filter { $0 == .failed(Oops()) }.count == 1)
      }
      subjects.value[0].send(-1)
      #expect(tracker.history.take() == [])
    }
  }
}
