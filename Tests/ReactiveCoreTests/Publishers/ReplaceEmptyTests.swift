import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct ReplaceEmptyTests {
  @Test func deliversTheValueIfThereIsNoOther() {
    let rig = Rig(demand: .max(1)) { $0.replaceEmpty(with: 42) }
    rig.source.send(completion: .finished)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.subscription("ReplaceEmpty"), .requested(.max(1)), .value(42), .finished])
  }

  @Test func theValueWaitsUntilItIsAskedFor() {
    let rig = Rig(demand: nil) { $0.replaceEmpty(with: 42) }
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.subscription("ReplaceEmpty")])
    rig.subscription.request(.max(1))
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.value(42), .finished])
  }

  @Test func cancellingKeepsTheValueFromComing() {
    let rig = Rig(demand: nil) { $0.replaceEmpty(with: 42) }
    rig.source.send(completion: .finished)
    rig.subscription.cancel()
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.subscription("ReplaceEmpty")])
  }

  @Test func afterAValueTheFinishPasses() {
    let rig = Rig(demand: .max(3), perValue: .max(2)) { $0.replaceEmpty(with: 42) }
    #expect(rig.source.send(1) == .max(2))
    rig.source.send(completion: .finished)
    #expect(rig.source.send(2) == .none)
    #expect(rig.take() == [.subscription("ReplaceEmpty"), .requested(.max(3)), .value(1), .finished])
  }

  @Test func afterAValueThatWasAllThatWasAskedForTheFinishPassesToo() {
    let rig = Rig(demand: .max(1)) { $0.replaceEmpty(with: 42) }
    rig.source.send(1)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.subscription("ReplaceEmpty"), .requested(.max(1)), .value(1), .finished])
  }

  @Test func aFailurePassesWithoutTheValue() {
    let rig = Rig(demand: nil) { $0.replaceEmpty(with: 42) }
    rig.source.send(completion: .failure(Oops(number: 1)))
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.subscription("ReplaceEmpty"), .failed(Oops(number: 1))])
  }

  @Test func asksUpstreamForNoMoreThanItIsAskedFor() {
    let rig = Rig(demand: .max(1)) { $0.replaceEmpty(with: 42) }
    rig.subscription.request(.max(2))
    rig.source.sendSubscription()
    rig.subscription.cancel()
    rig.source.send(completion: .finished)
    #expect(
      rig.take() == [
        .subscription("ReplaceEmpty"), .requested(.max(1)), .requested(.max(2)), .cancelled, .cancelled,
      ])
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.replaceEmpty(with: 42) }
    expectEverythingReleased(sending: []) { $0.replaceEmpty(with: 42) }
  }

  @Test func isEqualWhenItsPartsAre() {
    let publisher = Fail<Int, Oops>(error: Oops())
    #expect(publisher.replaceEmpty(with: 1) == publisher.replaceEmpty(with: 1))
    #expect(publisher.replaceEmpty(with: 1) != publisher.replaceEmpty(with: 2))
  }

  @Test func ignoresWhatComesBeforeTheSubscription() {
    let rig = Rig(subscribesAtOnce: false) { $0.replaceEmpty(with: 42) }
    #expect(rig.source.send(1) == .none)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    rig.source.sendSubscription()
    #expect(rig.take() == [.subscription("ReplaceEmpty"), .requested(.unlimited)])
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.value(42), .finished])
  }

  @Test func showsNothingInItsMirror() {
    let rig = Rig { $0.replaceEmpty(with: 42) }
    #expect(Mirror(reflecting: rig.subscription).children.isEmpty)
    #expect(rig.source.subscriber?.customMirror.children.isEmpty == true)
  }

  @Test func withstandsReentrancy() {
    let rig = Rig(demand: nil) { $0.replaceEmpty(with: 42) }
    rig.source.onRequest = { [unowned rig] _ in rig.source.send(completion: .finished) }
    rig.subscriber.onValue = { [unowned rig] _ in rig.subscription.request(.max(1)) }
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.subscription("ReplaceEmpty"), .requested(.max(1)), .value(42), .finished])
    let other = Rig(demand: .max(1)) { $0.replaceEmpty(with: 42) }
    other.subscriber.onValue = { [unowned other] _ in other.subscription.cancel() }
    other.source.send(1)
    other.source.send(2)
    other.source.send(completion: .finished)
    #expect(other.take() == [.subscription("ReplaceEmpty"), .requested(.max(1)), .value(1), .cancelled])
  }
}
