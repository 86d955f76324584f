import ReactiveCore
import ReactiveTestSupport
import Testing

/// The common behaviour of all operators of the reduce family.
@Suite struct ReductionTests {
  @Test func closuresAreReleasedAtTheEnd() {
    expectClosureReleased { source, token in
      source.reduce(0) {
        withExtendedLifetime(token) {}; return $0 + $1
      }
    }
    expectClosureReleased { source, token in source.allSatisfy { _ in withExtendedLifetime(token) { true } } }
    expectClosureReleased { source, token in source.tryLast { _ in withExtendedLifetime(token) { true } } }
    expectClosureReleased { source, token in source.max { _, _ in withExtendedLifetime(token) { true } } }
  }

  @Test func collectedValuesAreReleasedAtTheEnd() {
    final class Token {}
    for end in End.allCases {
      weak var observed: Token?
      let source = ManualPublisher<Token, Oops>()
      let subscriber = TrackingSubscriber<Int, Oops>(.max(1))
      source.collect().map(\.count).subscribe(subscriber)
      do {
        let token = Token()
        observed = token
        source.send(token)
      }
      #expect(observed != nil)
      switch end {
      case .finish: source.send(completion: .finished)
      case .failure: source.send(completion: .failure(Oops()))
      case .cancel: subscriber.subscription?.cancel()
      }
      source.forget()
      #expect(observed == nil, "after \(end)")
    }
  }

  @Test func cancellingWithinTheClosureEndsIt() {
    final class Holder { var subscription: (any Subscription)? }
    let holder = Holder()
    let rig = Rig { source in
      source.reduce(0) {
        holder.subscription?.cancel()
        return $0 + $1
      }
    }
    holder.subscription = rig.subscription
    rig.source.send(1)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.subscription("Reduce"), .requested(.unlimited), .cancelled])
    holder.subscription = nil
  }

  @Test func cancellingWithinTheSubscriptionAsksForNothing() {
    let source = ManualPublisher<Int, Oops>()
    let subscriber = TrackingSubscriber<Int, Oops>(history: source.history)
    subscriber.onSubscription = { $0.cancel() }
    source.count().subscribe(subscriber)
    #expect(source.history.events == [.subscription("Count"), .cancelled])
  }

  @Test func aSourceMayFinishWithinTheRequest() {
    let source = ManualPublisher<Int, Oops>()
    source.onRequest = { [unowned source] _ in
      source.send(1)
      source.send(completion: .finished)
    }
    let subscriber = TrackingSubscriber<Int, Oops>(.max(1), history: source.history)
    source.count().subscribe(subscriber)
    #expect(source.history.events == [.subscription("Count"), .requested(.unlimited), .value(1), .finished])
  }

  @Test func cancellingWithinTheResultPreventsNothingTwice() {
    let rig = Rig { $0.count() }
    rig.subscriber.onValue = { [unowned rig] _ in
      rig.subscription.request(.max(1))
      rig.subscription.cancel()
    }
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.subscription("Count"), .requested(.unlimited), .value(0), .finished])
  }

  @Test func showsWhatItHolds() {
    let rig = Rig(demand: nil) { $0.reduce(5, +) }
    for mirror in [Mirror(reflecting: rig.subscription), rig.source.subscriber!.customMirror] {
      #expect(mirror.children.map(\.label) == ["downstream", "result", "initial", "status"])
      #expect(mirror.descendant("initial") as? Int == 5)
    }
    rig.source.send(2)
    rig.source.send(completion: .finished)
    #expect(Mirror(reflecting: rig.subscription).descendant("result") as? Int == 7)
    #expect(rig.source.subscriber?.description == "Reduce")
  }

  @Test func stopsTheProgramOnARequestForNothing() async {
    await #expect(processExitsWith: .failure) {
      let rig = Rig { $0.count() }
      rig.subscription.request(.none)
    }
  }

  @Test func requestAndFinishMayRace() async {
    for _ in 0..<200 {
      let source = UncheckedBox(ManualPublisher<Int, Oops>())
      let subscriber = UncheckedBox(TrackingSubscriber<Int, Oops>())
      source.value.count().subscribe(subscriber.value)
      let subscription = UncheckedBox(subscriber.value.subscription!)
      async let requesting: Void = subscription.value.request(.max(1))
      async let finishing: Void = {
        source.value.send(1)
        source.value.send(completion: .finished)
      }()
      _ = await (requesting, finishing)
      #expect(subscriber.value.history.events == [.subscription("Count"), .value(1), .finished])
    }
  }

  @Test func cancellationMayRaceWithTheResult() async {
    for _ in 0..<200 {
      let source = UncheckedBox(ManualPublisher<Int, Oops>())
      let subscriber = UncheckedBox(TrackingSubscriber<Int, Oops>(.max(1)))
      source.value.count().subscribe(subscriber.value)
      let subscription = UncheckedBox(subscriber.value.subscription!)
      async let cancelling: Void = subscription.value.cancel()
      async let finishing: Void = source.value.send(completion: .finished)
      _ = await (cancelling, finishing)
      let events = subscriber.value.history.events
      #expect(events == [.subscription("Count")] || events == [.subscription("Count"), .value(0), .finished])
    }
  }
}
