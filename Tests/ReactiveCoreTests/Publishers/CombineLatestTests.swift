import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct CombineLatestTests {
  typealias Source = ManualPublisher<Int, Oops>

  /// The latest of two to four sources, written one after the other.
  static func latest(_ s: [Source]) -> AnyPublisher<String, Oops> {
    switch s.count {
    case 2: s[0].combineLatest(s[1]) { "\($0),\($1)" }.eraseToAnyPublisher()
    case 3: s[0].combineLatest(s[1], s[2]) { "\($0),\($1),\($2)" }.eraseToAnyPublisher()
    default: s[0].combineLatest(s[1], s[2], s[3]) { "\($0),\($1),\($2),\($3)" }.eraseToAnyPublisher()
    }
  }

  @Test(arguments: 2...4)
  func combinesEachValueWithTheLatestOfTheOthers(count: Int) {
    let rig = CombiningRig(of: count, Self.latest)
    #expect(rig.take() == [.subscription("CombineLatest")])
    #expect(rig.askedAll() == Array(repeating: [.requested(.unlimited)], count: count))
    var latest = Array(repeating: 0, count: count)
    for index in 0..<(count - 1) {
      rig.sources[index].send(-1)
      #expect(rig.sources[index].send(0) == .none)
    }
    #expect(rig.take() == [])
    for (step, index) in ([count - 1] + Array(0..<count)).enumerated() {
      latest[index] = step
      #expect(rig.sources[index].send(step) == .none)
      #expect(rig.take() == [.value(latest.map(String.init).joined(separator: ","))])
    }
  }

  @Test func tuplesHaveTheOrderOfTheUpstreams() {
    let a = [1, 2].publisher
    let b = ["x", "y"].publisher
    var pairs: [String] = []
    _ = a.combineLatest(b).sink { pairs.append("\($0.0)\($0.1)") }
    _ = a.combineLatest(b, a).sink { pairs.append("\($0.0)\($0.1)\($0.2)") }
    _ = b.combineLatest(a, b, a).sink { pairs.append("\($0.0)\($0.1)\($0.2)\($0.3)") }
    #expect(pairs == ["2x", "2y", "2y1", "2y2", "y2y1", "y2y2"])
  }

  @Test func aRequestGoesToAll() {
    let rig = CombiningRig(of: 3, demand: nil, Self.latest)
    #expect(rig.askedAll() == [[], [], []])
    rig.subscription.request(.max(2))
    #expect(rig.askedAll() == Array(repeating: [.requested(.max(2))], count: 3))
  }

  @Test func withoutDemandAValueIsTheLatestButDeliversNothing() {
    let rig = CombiningRig(demand: .max(1), Self.latest)
    rig.sources[0].send(1)
    rig.sources[1].send(2)
    rig.sources[1].send(3)
    #expect(rig.take() == [.subscription("CombineLatest"), .value("1,2")])
    rig.subscription.request(.max(1))
    #expect(rig.take() == [])
    rig.sources[0].send(4)
    rig.sources[0].send(5)
    #expect(rig.take() == [.value("4,3")])
  }

  @Test func whatIsWantedAfterAValueIsReturnedToItsSenderAndRequestedFromTheOthers() {
    let rig = CombiningRig(of: 3, demand: .max(1), perValue: .max(4), Self.latest)
    _ = rig.askedAll()
    #expect(rig.sources[0].send(0) == .none)
    #expect(rig.sources[2].send(2) == .none)
    #expect(rig.sources[1].send(1) == .max(4))
    #expect(rig.askedAll() == [[.requested(.max(4))], [], [.requested(.max(4))]])
  }

  @Test func aRequestFromWithinAValueGoesToAllAtOnce() {
    let rig = CombiningRig(demand: .max(1), Self.latest)
    rig.subscriber.onValue = { [unowned rig] _ in rig.subscription.request(.max(6)) }
    rig.sources[0].send(1)
    #expect(rig.sources[1].send(1) == .none)
    #expect(rig.askedAll() == Array(repeating: [.requested(.max(1)), .requested(.max(6))], count: 2))
  }

  @Test func finishesWhenAllHave() {
    let rig = CombiningRig(of: 3, Self.latest)
    rig.sources[0].send(completion: .finished)
    rig.sources[0].send(completion: .finished)
    rig.sources[0].send(1)
    rig.sources[1].send(completion: .finished)
    #expect(rig.take() == [.subscription("CombineLatest")])
    rig.sources[2].send(completion: .finished)
    rig.sources[2].send(completion: .finished)
    #expect(rig.take() == [.finished])
    #expect(rig.askedAll() == Array(repeating: [.requested(.unlimited)], count: 3))
  }

  @Test func aFinishedUpstreamKeepsItsLatestValue() {
    let rig = CombiningRig(Self.latest)
    rig.sources[0].send(1)
    rig.sources[0].send(completion: .finished)
    rig.sources[1].send(1)
    rig.sources[1].send(2)
    #expect(rig.take() == [.subscription("CombineLatest"), .value("1,1"), .value("1,2")])
  }

  @Test func anEndThatComesBeforeTheSubscriptionWaitsForIt() {
    let rig = CombiningRig(of: 0) { _ in
      Empty(outputType: Int.self, failureType: Oops.self).combineLatest(Empty<Int, Oops>()) { $0 + $1 }
    }
    #expect(rig.take() == [.subscription("CombineLatest"), .finished])
    let failing = CombiningRig(of: 1) {
      $0[0].combineLatest(Fail<Int, Oops>(error: Oops(number: 1))) { $0 + $1 }
    }
    #expect(failing.take() == [.subscription("CombineLatest"), .failed(Oops(number: 1))])
    #expect(failing.askedAll() == [[.cancelled]])
  }

  @Test func aFailureCancelsTheOthers() {
    let rig = CombiningRig(of: 3, Self.latest)
    _ = (rig.take(), rig.askedAll())
    rig.sources[1].send(completion: .failure(Oops(number: 1)))
    rig.sources[0].send(completion: .failure(Oops(number: 2)))
    for source in rig.sources { source.send(1) }
    #expect(rig.take() == [.failed(Oops(number: 1))])
    #expect(rig.askedAll() == [[.cancelled], [], [.cancelled]])
  }

  @Test func cancellationCancelsAll() {
    let rig = CombiningRig(Self.latest)
    _ = (rig.take(), rig.askedAll())
    rig.subscription.cancel()
    rig.subscription.cancel()
    for source in rig.sources { source.send(1) }
    for source in rig.sources { source.send(completion: .finished) }
    rig.subscription.request(.max(1))
    #expect(rig.take() == [])
    #expect(rig.askedAll() == [[.cancelled], [.cancelled]])
  }

  @Test func cancellingFromWithinAValueStopsTheRest() {
    let rig = CombiningRig(Self.latest)
    rig.subscriber.onValue = { [unowned rig] _ in
      rig.subscription.cancel()
      rig.sources[0].send(2)
    }
    for source in rig.sources { source.send(1) }
    rig.sources[0].send(3)
    #expect(rig.take() == [.subscription("CombineLatest"), .value("1,1")])
  }

  @Test func cancelsSecondSubscriptions() {
    let rig = CombiningRig(Self.latest)
    _ = rig.askedAll()
    rig.sources[1].sendSubscription()
    #expect(rig.askedAll() == [[], [.cancelled]])
  }

  @Test func whatIsSentWithinAValueComesAfterIt() {
    let rig = CombiningRig(demand: .max(3), Self.latest)
    var depth = 0
    var round = 0
    rig.subscriber.onValue = { [unowned rig] _ in
      depth += 1
      round += 1
      #expect(depth == 1)
      rig.sources[round % 2].send(round + 1)
      if round == 3 { for source in rig.sources { source.send(completion: .finished) } }
      depth -= 1
    }
    for source in rig.sources { source.send(1) }
    #expect(
      rig.take() == [
        .subscription("CombineLatest"), .value("1,1"), .value("1,2"), .value("3,2"), .finished,
      ])
  }

  @Test(arguments: [Subscribers.Demand.unlimited, .max(1)])
  func twoLongSequences(demand: Subscribers.Demand) {
    var count = 0
    var last = (0, 0)
    var isFinished = false
    (1...300_000).publisher.combineLatest((1...300_000).publisher).subscribe(
      AnySubscriber(
        receiveSubscription: { $0.request(demand) },
        receiveValue: {
          count += 1
          last = $0
          return demand == .unlimited ? .none : demand
        }, receiveCompletion: { _ in isFinished = true }))
    #expect(count >= 300_000)
    #expect(last == (300_000, 300_000))
    #expect(isFinished)
  }

  @Test func comparesItsUpstreams() {
    #expect(Just(1).combineLatest(Just("a")) == Publishers.CombineLatest(Just(1), Just("a")))
    #expect(Just(1).combineLatest(Just("a")) != Publishers.CombineLatest(Just(1), Just("b")))
    let three = Just(1).combineLatest(Just(2), Just(3))
    #expect(three == Publishers.CombineLatest3(Just(1), Just(2), Just(3)))
    #expect(three != Publishers.CombineLatest3(Just(1), Just(2), Just(4)))
    let four = Just(1).combineLatest(Just(2), Just(3), Just(4))
    #expect(four != Publishers.CombineLatest4(Just(1), Just(2), Just(3), Just(5)))
  }

  @Test func describesItself() {
    let rig = CombiningRig(demand: .max(7), Self.latest)
    #expect(rig.sources[0].subscriber?.description == "CombineLatest")
    let children = Mirror(reflecting: rig.subscription).children
    #expect(children.first { $0.label == "demand" }?.value as? Subscribers.Demand == .max(7))
  }

  @Test func stopsTheProgramWhenNothingIsAskedFor() async {
    await #expect(processExitsWith: .failure) {
      CombiningRig(demand: Subscribers.Demand.none, Self.latest).subscription.cancel()
    }
  }

  @Test(arguments: 2...4)
  func releasesEverything(count: Int) {
    expectCombinationReleased(of: count, Self.latest)
    expectCombinationReleased(of: count, sending: Array(0..<count), Self.latest)
  }

  @Test func upstreamsMaySendFromManyThreads() async {
    let subjects = UncheckedBox((0..<4).map { _ in CurrentValueSubject<Int, Never>(0) })
    let s = subjects.value
    var count = 0
    var latest = (0, 0, 0, 0)
    var disorder = 0
    var completions = 0
    let subscription = s[0].combineLatest(s[1], s[2], s[3]).sink { _ in
      completions += 1
    } receiveValue: { value in
      if completions > 0 || value.0 < latest.0 || value.1 < latest.1 || value.2 < latest.2
        || value.3 < latest.3
      {
        disorder += 1
      }
      latest = value
      count += 1
    }
    await withTaskGroup(of: Void.self) { group in
      for sender in 0..<4 {
        group.addTask {
          for number in 1...2000 { subjects.value[sender].send(number) }
          subjects.value[sender].send(completion: .finished)
        }
      }
    }
    #expect(count == 8001)
    #expect(latest == (2000, 2000, 2000, 2000))
    #expect(disorder == 0)
    #expect(completions == 1)
    subscription.cancel()
  }
}
