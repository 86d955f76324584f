import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct ReplaceErrorTests {
  @Test func deliversTheValueInPlaceOfTheError() {
    let rig = Rig(demand: .max(2), perValue: .max(1)) { $0.replaceError(with: 42) }
    #expect(rig.source.send(1) == .max(1))
    rig.source.send(completion: .failure(Oops()))
    rig.source.send(completion: .failure(Oops()))
    #expect(rig.source.send(2) == .none)
    rig.subscription.request(.max(1))
    rig.subscription.cancel()
    #expect(
      rig.take() == [
        .subscription("ReplaceError"), .requested(.max(2)), .value(1), .value(42), .finished,
      ])
  }

  @Test func theValueWaitsUntilItIsAskedFor() {
    let rig = Rig(demand: .max(1)) { $0.replaceError(with: 42) }
    rig.source.send(9)
    rig.source.send(completion: .failure(Oops()))
    #expect(rig.take() == [.subscription("ReplaceError"), .requested(.max(1)), .value(9)])
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.value(42), .finished])
  }

  @Test func cancellingKeepsTheValueFromComing() {
    let rig = Rig(demand: nil) { $0.replaceError(with: 42) }
    rig.source.send(completion: .failure(Oops()))
    rig.subscription.cancel()
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.subscription("ReplaceError")])
  }

  @Test func aFinishPasses() {
    let rig = Rig(demand: nil) { $0.replaceError(with: 42) }
    rig.source.send(completion: .finished)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.subscription("ReplaceError"), .finished])
  }

  @Test func isKnownDownstreamBeforeUpstreamSubscribes() {
    let rig = Rig(demand: .max(2), subscribesAtOnce: false) { $0.replaceError(with: 42) }
    rig.subscription.request(.max(3))
    #expect(rig.source.send(1) == .none)
    #expect(rig.take() == [.subscription("ReplaceError")])
    rig.source.sendSubscription()
    rig.source.sendSubscription()
    #expect(rig.take() == [.requested(.max(5)), .cancelled])
  }

  @Test func anUpstreamThatEndsAtOnceIsHeldBackUntilTheSubscriptionIsKnown() {
    let finished = TrackingSubscriber<Int, Never>(.max(1))
    Empty<Int, Oops>().replaceError(with: 1).subscribe(finished)
    #expect(finished.history.events == [.subscription("ReplaceError"), .finished])
    let failed = TrackingSubscriber<Int, Never>(.max(1))
    Fail<Int, Oops>(error: Oops()).replaceError(with: 1).subscribe(failed)
    #expect(failed.history.events == [.subscription("ReplaceError"), .value(1), .finished])
  }

  @Test func cancellationPasses() {
    let rig = Rig { $0.replaceError(with: 42) }
    rig.subscription.cancel()
    rig.subscription.cancel()
    rig.source.send(1)
    rig.source.send(completion: .failure(Oops()))
    #expect(rig.take() == [.subscription("ReplaceError"), .requested(.unlimited), .cancelled])
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.replaceError(with: 42) }
  }

  @Test func isEqualWhenItsPartsAre() {
    let publisher = Fail<Int, Oops>(error: Oops())
    #expect(publisher.replaceError(with: 1) == publisher.replaceError(with: 1))
    #expect(publisher.replaceError(with: 1) != publisher.replaceError(with: 2))
  }

  @Test func stopsTheProgramOnARequestForNothing() async {
    await #expect(processExitsWith: .failure) {
      Rig(demand: nil) { $0.replaceError(with: 1) }.subscription.request(.none)
    }
  }

  @Test func ignoresACompletionThatComesBeforeTheSubscription() {
    for completion in [Subscribers.Completion<Oops>.finished, .failure(Oops())] {
      let rig = Rig(demand: .max(1), subscribesAtOnce: false) { $0.replaceError(with: 42) }
      rig.source.send(completion: completion)
      rig.source.sendSubscription()
      rig.source.send(1)
      #expect(rig.take() == [.subscription("ReplaceError"), .requested(.max(1)), .value(1)])
    }
  }

  @Test func showsNothingInItsMirror() {
    let rig = Rig { $0.replaceError(with: 42) }
    #expect(Mirror(reflecting: rig.subscription).children.isEmpty)
    #expect(rig.source.subscriber?.customMirror.children.isEmpty == true)
  }

  @Test func withstandsReentrancy() {
    expectStreamWithstandsReentrancy(named: "ReplaceError") { $0.mapError { $0 }.replaceError(with: 42) }
  }
}
