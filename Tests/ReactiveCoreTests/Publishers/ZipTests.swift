import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct ZipTests {
  typealias Source = ManualPublisher<Int, Oops>

  /// A zip of two to four sources, whose values are written one after the other.
  static func zip(_ s: [Source]) -> AnyPublisher<String, Oops> {
    switch s.count {
    case 2: s[0].zip(s[1]) { "\($0),\($1)" }.eraseToAnyPublisher()
    case 3: s[0].zip(s[1], s[2]) { "\($0),\($1),\($2)" }.eraseToAnyPublisher()
    default: s[0].zip(s[1], s[2], s[3]) { "\($0),\($1),\($2),\($3)" }.eraseToAnyPublisher()
    }
  }

  @Test(arguments: 2...4)
  func combinesTheFirstOfAllThenTheSecond(count: Int) {
    let rig = CombiningRig(of: count, Self.zip)
    #expect(rig.take() == [.subscription("Zip")])
    #expect(rig.askedAll() == Array(repeating: [.requested(.unlimited)], count: count))
    for round in 0..<2 {
      for index in 0..<(count - 1) { #expect(rig.sources[index].send(10 * round + index) == .none) }
    }
    #expect(rig.take() == [])
    rig.sources[count - 1].send(count - 1)
    rig.sources[count - 1].send(10 + count - 1)
    let combined = (0..<2).map { round in
      Happening.value((0..<count).map { "\(10 * round + $0)" }.joined(separator: ","))
    }
    #expect(rig.take() == combined)
  }

  @Test func tuplesHaveTheOrderOfTheUpstreams() {
    let a = [1, 2].publisher
    let b = ["x", "y"].publisher
    var pairs: [String] = []
    _ = a.zip(b).sink { pairs.append("\($0.0)\($0.1)") }
    _ = a.zip(b, a).sink { pairs.append("\($0.0)\($0.1)\($0.2)") }
    _ = b.zip(a, b, a).sink { pairs.append("\($0.0)\($0.1)\($0.2)\($0.3)") }
    #expect(pairs == ["1x", "2y", "1x1", "2y2", "x1x1", "y2y2"])
  }

  @Test func downstreamIsKnownWhenAllUpstreamsAre() {
    let rig = CombiningRig(demand: .max(2), subscribingAtOnce: false, Self.zip)
    rig.sources[0].sendSubscription()
    #expect(rig.take() == [])
    rig.sources[1].sendSubscription()
    #expect(rig.take() == [.subscription("Zip")])
    #expect(rig.askedAll() == [[.requested(.max(2))], [.requested(.max(2))]])
  }

  @Test func aRequestGoesToAll() {
    let rig = CombiningRig(of: 3, demand: nil, Self.zip)
    #expect(rig.askedAll() == [[], [], []])
    rig.subscription.request(.max(2))
    #expect(rig.askedAll() == Array(repeating: [.requested(.max(2))], count: 3))
  }

  @Test func whatIsAskedForDuringAValueIsReturnedToItsSenderAndRequestedFromTheOthers() {
    let rig = CombiningRig(of: 3, demand: .max(1), perValue: .max(4), Self.zip)
    _ = rig.askedAll()
    rig.subscriber.onValue = { [unowned rig] _ in rig.subscription.request(.max(3)) }
    #expect(rig.sources[0].send(0) == .none)
    #expect(rig.sources[2].send(2) == .none)
    #expect(rig.sources[1].send(1) == .max(7))
    #expect(rig.askedAll() == [[.requested(.max(7))], [], [.requested(.max(7))]])
  }

  @Test(arguments: 2...4)
  func finishesWhenOneFinishesThatHasNothingWaiting(count: Int) {
    for index in 0..<count {
      let rig = CombiningRig(of: count, Self.zip)
      _ = (rig.take(), rig.askedAll())
      rig.sources[(index + 1) % count].send(1)
      rig.sources[index].send(completion: .finished)
      #expect(rig.take() == [.finished])
      for other in 0..<count { #expect(rig.asked(other) == (other == index ? [] : [.cancelled])) }
    }
  }

  @Test func finishesWhenTheLastValueOfAFinishedUpstreamIsDelivered() {
    let rig = CombiningRig(Self.zip)
    rig.sources[0].send(1)
    rig.sources[0].send(2)
    rig.sources[0].send(completion: .finished)
    rig.sources[0].send(3)
    rig.sources[1].send(1)
    #expect(rig.take() == [.subscription("Zip"), .value("1,1")])
    #expect(rig.sources[1].send(2) == .none)
    #expect(rig.take() == [.value("2,2"), .finished])
    #expect(rig.askedAll() == [[.requested(.unlimited)], [.requested(.unlimited), .cancelled]])
    rig.sources[1].send(3)
    rig.sources[1].send(completion: .finished)
    #expect(rig.take() == [])
  }

  @Test func anUpstreamThatFinishesBeforeAllAreKnown() {
    let rig = CombiningRig(of: 1) {
      Empty(outputType: Int.self, failureType: Oops.self).zip($0[0]) { $0 + $1 }
    }
    #expect(rig.take() == [.subscription("Zip"), .finished])
    #expect(rig.askedAll() == [[.cancelled]])
  }

  @Test func aFailureCancelsAll() {
    let rig = CombiningRig(of: 3, Self.zip)
    rig.sources[1].send(1)
    _ = (rig.take(), rig.askedAll())
    rig.sources[1].send(completion: .failure(Oops(number: 1)))
    rig.sources[0].send(completion: .failure(Oops(number: 2)))
    rig.sources[0].send(1)
    #expect(rig.take() == [.failed(Oops(number: 1))])
    #expect(rig.askedAll() == [[.cancelled], [.cancelled], [.cancelled]])
  }

  @Test func cancellationCancelsAll() {
    let rig = CombiningRig(Self.zip)
    _ = (rig.take(), rig.askedAll())
    rig.subscription.cancel()
    rig.subscription.cancel()
    for source in rig.sources { source.send(1) }
    rig.sources[0].send(completion: .finished)
    rig.subscription.request(.max(1))
    #expect(rig.take() == [])
    #expect(rig.askedAll() == [[.cancelled], [.cancelled]])
  }

  @Test func cancellingFromWithinAValueStopsTheRest() {
    let rig = CombiningRig(Self.zip)
    rig.subscriber.onValue = { [unowned rig] _ in
      rig.subscription.cancel()
      for source in rig.sources { source.send(2) }
    }
    for source in rig.sources { source.send(1) }
    #expect(rig.take() == [.subscription("Zip"), .value("1,1")])
  }

  @Test func cancellingOnSubscription() {
    let source = Source()
    let subscriber = TrackingSubscriber<Int, Oops>()
    subscriber.onSubscription = { $0.cancel() }
    source.zip(Just(1).setFailureType(to: Oops.self)) { $0 + $1 }.subscribe(subscriber)
    #expect(subscriber.history.take() == [.subscription("Zip")])
    #expect(source.history.take() == [.cancelled])
  }

  @Test func cancelsSecondSubscriptions() {
    let rig = CombiningRig(Self.zip)
    _ = rig.askedAll()
    rig.sources[1].sendSubscription()
    #expect(rig.askedAll() == [[], [.cancelled]])
  }

  @Test func whatIsSentWithinAValueComesAfterIt() {
    let rig = CombiningRig(Self.zip)
    var depth = 0
    var round = 0
    rig.subscriber.onValue = { [unowned rig] _ in
      depth += 1
      round += 1
      #expect(depth == 1)
      if round < 3 { for source in rig.sources { source.send(round + 1) } }
      if round == 3 { rig.sources[0].send(completion: .finished) }
      depth -= 1
    }
    for source in rig.sources { source.send(1) }
    #expect(
      rig.take() == [.subscription("Zip"), .value("1,1"), .value("2,2"), .value("3,3"), .finished])
  }

  @Test(arguments: [Subscribers.Demand.unlimited, .max(1)])
  func twoLongSequences(demand: Subscribers.Demand) {
    var sum = 0
    var isFinished = false
    let zipped = (1...300_000).publisher.zip((1...300_001).publisher)
    zipped.subscribe(
      AnySubscriber(
        receiveSubscription: { $0.request(demand) },
        receiveValue: {
          sum += $0.0 + $0.1
          return demand == .unlimited ? .none : demand
        }, receiveCompletion: { _ in isFinished = true }))
    #expect(sum == 90_000_300_000)
    #expect(isFinished)
  }

  @Test func anEndlessUpstreamIsCancelledWhenTheOtherHasFinished() {
    var values: [Int] = []
    _ = [1, 2].publisher.zip((0...).publisher) { $0 + $1 }.sink { values.append($0) }
    #expect(values == [1, 3])
  }

  @Test func comparesItsUpstreams() {
    #expect(Just(1).zip(Just("a")) == Publishers.Zip(Just(1), Just("a")))
    #expect(Just(1).zip(Just("a")) != Publishers.Zip(Just(1), Just("b")))
    #expect(Just(1).zip(Just(2), Just(3)) == Publishers.Zip3(Just(1), Just(2), Just(3)))
    #expect(Just(1).zip(Just(2), Just(3)) != Publishers.Zip3(Just(1), Just(2), Just(4)))
    #expect(Just(1).zip(Just(2), Just(3), Just(4)) != Publishers.Zip4(Just(1), Just(2), Just(3), Just(5)))
  }

  @Test func describesItself() {
    let rig = CombiningRig(Self.zip)
    #expect(rig.sources[0].subscriber?.description == "Zip")
    #expect(rig.sources[0].subscriber?.customMirror.children.first?.label == "parentSubscription")
    #expect(Mirror(reflecting: rig.subscription).children.isEmpty)
  }

  @Test func stopsTheProgramWhenNothingIsAskedFor() async {
    await #expect(processExitsWith: .failure) {
      CombiningRig(demand: Subscribers.Demand.none, Self.zip).subscription.cancel()
    }
  }

  @Test(arguments: 2...4)
  func releasesEverything(count: Int) {
    expectCombinationReleased(of: count, Self.zip)
    expectCombinationReleased(of: count, sending: Array(0..<count), Self.zip)
  }

  @Test func upstreamsMaySendFromManyThreads() async {
    let subjects = UncheckedBox((0..<4).map { _ in PassthroughSubject<Int, Never>() })
    let s = subjects.value
    var next = 0
    var disorder = 0
    var completions = 0
    let subscription = s[0].zip(s[1], s[2], s[3]).sink { _ in
      completions += 1
    } receiveValue: { value in
      if value != (next, next, next, next) || completions > 0 { disorder += 1 }
      next += 1
    }
    await withTaskGroup(of: Void.self) { group in
      for sender in 0..<4 {
        group.addTask {
          for number in 0..<2000 { subjects.value[sender].send(number) }
          subjects.value[sender].send(completion: .finished)
        }
      }
    }
    #expect(next == 2000)
    #expect(disorder == 0)
    #expect(completions == 1)
    subscription.cancel()
  }
}
