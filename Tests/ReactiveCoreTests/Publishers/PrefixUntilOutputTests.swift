import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct PrefixUntilOutputTests {
  typealias Other = ManualPublisher<String, Never>

  @Test func passesValuesOnUntilTheOtherDelivers() {
    let other = Other()
    let rig = Rig(demand: .max(3), perValue: .max(2)) { $0.prefix(untilOutputFrom: other) }
    #expect(other.history.take() == [.requested(.max(1))])
    #expect(rig.source.send(1) == .max(2))
    rig.subscription.request(.max(1))
    other.send("stop")
    other.send("again")
    #expect(rig.source.send(2) == .none)
    rig.source.send(completion: .failure(Oops()))
    #expect(
      rig.take() == [
        .subscription("PrefixUntilOutput"), .requested(.max(3)), .value(1), .requested(.max(1)),
        .cancelled, .finished,
      ])
    #expect(other.history.take() == [.cancelled])
  }

  @Test func goesOnWhenTheOtherEndsWithoutAValue() {
    let other = ManualPublisher<Int, CancellationError>()
    let rig = Rig { $0.prefix(untilOutputFrom: other) }
    other.send(completion: .failure(CancellationError()))
    rig.source.send(1)
    rig.source.send(completion: .failure(Oops(number: 2)))
    #expect(
      rig.take() == [
        .subscription("PrefixUntilOutput"), .requested(.unlimited), .value(1), .failed(Oops(number: 2)),
      ])
    #expect(other.history.take() == [.requested(.max(1))])
  }

  @Test func theEndOfUpstreamCancelsTheOther() {
    let other = Other()
    let rig = Rig(demand: nil) { $0.prefix(untilOutputFrom: other) }
    rig.source.send(completion: .finished)
    other.send("late")
    #expect(rig.take() == [.subscription("PrefixUntilOutput"), .finished])
    #expect(other.history.take() == [.requested(.max(1)), .cancelled])
  }

  @Test func cancelsBoth() {
    let other = Other()
    let rig = Rig(demand: nil) { $0.prefix(untilOutputFrom: other) }
    rig.subscription.cancel()
    rig.subscription.cancel()
    rig.subscription.request(.max(1))
    rig.source.send(1)
    other.send("late")
    #expect(rig.take() == [.subscription("PrefixUntilOutput"), .cancelled])
    #expect(other.history.take() == [.requested(.max(1)), .cancelled])
  }

  @Test func anOtherThatDeliversAtOnceLeavesNothing() {
    let rig = Rig { $0.prefix(untilOutputFrom: Just(1)) }
    #expect(rig.take() == [.subscription("PrefixUntilOutput"), .finished, .cancelled])
  }

  @Test func anEndThatComesWhileAValueIsDeliveredFollowsIt() {
    let other = Other()
    var log: [String] = []
    let rig = Rig { $0.prefix(untilOutputFrom: other) }
    rig.subscriber.onValue = { _ in
      log.append("in")
      other.send("stop")
      log.append("out")
    }
    rig.subscriber.onCompletion = { log.append("end") }
    rig.source.send(1)
    rig.source.send(2)
    #expect(log == ["in", "out", "end"])
    #expect(
      rig.take() == [
        .subscription("PrefixUntilOutput"), .requested(.unlimited), .value(1), .cancelled, .finished,
      ])
  }

  @Test func secondSubscriptionsAreCancelled() {
    let other = Other()
    let rig = Rig(demand: nil) { $0.prefix(untilOutputFrom: other) }
    rig.source.sendSubscription()
    other.sendSubscription()
    rig.subscription.request(.none)
    #expect(rig.take() == [.subscription("PrefixUntilOutput"), .cancelled, .requested(.none)])
    #expect(other.history.take() == [.requested(.max(1)), .cancelled])
    #expect(rig.source.subscriber?.combineIdentifier == other.subscriber?.combineIdentifier)
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.prefix(untilOutputFrom: Empty<Int, Never>(completeImmediately: false)) }
    var isReleased = false
    let other = PassthroughSubject<Int, Never>()
    do {
      let rig = Rig { $0.prefix(untilOutputFrom: other) }
      rig.subscriber.onDeinit = { isReleased = true }
      other.send(1)
      rig.source.forget()
    }
    #expect(isReleased)
  }

  @Test func theEndMayRaceWithValues() async {
    for _ in 0..<300 {
      let (source, other) = (PassthroughSubject<Int, Never>(), PassthroughSubject<Int, Never>())
      let subscriber = TrackingSubscriber<Int, Never>(.unlimited)
      source.prefix(untilOutputFrom: other).subscribe(subscriber)
      let subjects = UncheckedBox((source, other))
      async let values: Void = { for number in 0..<50 { subjects.value.0.send(number) } }()
      async let end: Void = subjects.value.1.send(0)
      _ = await (values, end)
      let events = subscriber.history.events
      let passed = (0..<(events.count - 2)).map { Happening.value($0) }
      #expect(events == [.subscription("PrefixUntilOutput")] + passed + [.finished])
    }
  }

  @Test func aFinishWithoutASubscriptionIsIgnored() {
    let other = ManualPublisher<Int, Never>()
    let rig = Rig(subscribesAtOnce: false) { $0.prefix(untilOutputFrom: other) }
    rig.source.send(completion: .finished)
    rig.source.sendSubscription()
    #expect(rig.take() == [.subscription("PrefixUntilOutput"), .requested(.unlimited)])
    #expect(other.history.take() == [.requested(.max(1))])
  }
}
