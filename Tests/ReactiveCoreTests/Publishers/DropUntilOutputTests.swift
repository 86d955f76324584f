import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct DropUntilOutputTests {
  typealias Other = ManualPublisher<String, Oops>

  @Test func dropsUntilTheOtherDelivers() {
    let other = Other()
    let rig = Rig(demand: .max(4), perValue: .max(2)) { $0.drop(untilOutputFrom: other) }
    #expect(other.history.take() == [.requested(.max(1))])
    #expect(rig.source.send(1) == .none)
    other.send("go")
    #expect(other.history.take() == [.cancelled])
    #expect(rig.source.send(2) == .max(2))
    other.send("again")
    other.send(completion: .failure(Oops()))
    #expect(rig.source.send(3) == .max(2))
    rig.source.send(completion: .finished)
    #expect(rig.source.send(4) == .none)
    rig.subscription.cancel()
    #expect(
      rig.take() == [
        .subscription("DropUntilOutput"), .requested(.max(4)), .value(2), .value(3), .finished,
      ])
    #expect(other.history.take() == [])
  }

  @Test func subscribesToTheOtherFirst() {
    let history = History()
    let other = ManualPublisher<Int, Oops>(history: history)
    let rig = Rig(source: ManualPublisher<Int, Oops>(history: history), demand: .max(2)) {
      $0.drop(untilOutputFrom: other)
    }
    #expect(rig.take() == [.subscription("DropUntilOutput"), .requested(.max(1)), .requested(.max(2))])
    #expect(rig.source.subscriber?.combineIdentifier == other.subscriber?.combineIdentifier)
  }

  @Test(arguments: [Subscribers.Completion<Oops>.finished, .failure(Oops(number: 3))])
  func endsAsTheOtherDoesWithoutAValue(completion: Subscribers.Completion<Oops>) {
    let other = Other()
    let rig = Rig { $0.drop(untilOutputFrom: other) }
    other.send(completion: completion)
    other.send(completion: completion)
    other.send("late")
    #expect(rig.source.send(1) == .none)
    rig.source.send(completion: .finished)
    let end = completion == .finished ? Happening.finished : .failed(Oops(number: 3))
    #expect(
      rig.take() == [.subscription("DropUntilOutput"), .requested(.unlimited), .cancelled, end])
  }

  @Test func upstreamMayEndFirst() {
    let other = Other()
    let rig = Rig { $0.drop(untilOutputFrom: other) }
    rig.source.send(completion: .failure(Oops(number: 1)))
    #expect(other.history.take() == [.requested(.max(1)), .cancelled])
    other.send("late")
    other.send(completion: .finished)
    #expect(
      rig.take() == [.subscription("DropUntilOutput"), .requested(.unlimited), .failed(Oops(number: 1))])
  }

  @Test func cancelsBoth() {
    let history = History()
    let other = ManualPublisher<Int, Oops>(history: history)
    let rig = Rig(source: ManualPublisher<Int, Oops>(history: history), demand: nil) {
      $0.drop(untilOutputFrom: other)
    }
    _ = rig.take()
    var order: [String] = []
    rig.source.onCancel = { order.append("upstream") }
    other.onCancel = { order.append("other") }
    rig.subscription.cancel()
    rig.subscription.cancel()
    rig.source.send(1)
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.cancelled, .cancelled])
    #expect(order == ["upstream", "other"])
  }

  @Test func requestsWaitForUpstream() {
    let other = Other()
    let rig = Rig(demand: .max(10), subscribesAtOnce: false) { $0.drop(untilOutputFrom: other) }
    rig.subscription.request(.max(4))
    rig.subscription.request(.none)
    rig.source.sendSubscription()
    rig.source.sendSubscription()
    other.sendSubscription()
    #expect(rig.take() == [.subscription("DropUntilOutput"), .requested(.max(14)), .cancelled])
    #expect(other.history.take() == [.requested(.max(1)), .cancelled])
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.drop(untilOutputFrom: Just(1).setFailureType(to: Oops.self)) }
    for end in End.allCases {
      var isReleased = false
      let other = PassthroughSubject<Int, Oops>()
      do {
        let rig = Rig { $0.drop(untilOutputFrom: other) }
        rig.subscriber.onDeinit = { isReleased = true }
        switch end {
        case .finish: rig.source.send(completion: .finished)
        case .failure: rig.source.send(completion: .failure(Oops()))
        case .cancel: rig.subscription.cancel()
        }
      }
      #expect(isReleased)
    }
  }

  @Test func completionsOfBothMayRace() async {
    for _ in 0..<300 {
      let (source, other) = (PassthroughSubject<Int, Oops>(), PassthroughSubject<Int, Oops>())
      let subscriber = TrackingSubscriber<Int, Oops>(.unlimited)
      source.drop(untilOutputFrom: other).subscribe(subscriber)
      let subjects = UncheckedBox((source, other))
      async let first: Void = subjects.value.0.send(completion: .finished)
      async let second: Void = subjects.value.1.send(completion: .finished)
      _ = await (first, second)
      #expect(subscriber.history.events == [.subscription("DropUntilOutput"), .finished])
    }
  }

  @Test func withstandsReentrancy() {
    let other = Just(1).setFailureType(to: Oops.self)
    expectStreamWithstandsReentrancy(named: "DropUntilOutput") { $0.drop(untilOutputFrom: other) }
  }
}
