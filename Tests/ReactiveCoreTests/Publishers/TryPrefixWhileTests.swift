import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct TryPrefixWhileTests {
  @Test func isOrderly() {
    expectOrderlyStream(named: "TryPrefixWhile") { $0.tryPrefix { _ in true } }
    expectStreamWithstandsReentrancy(named: "TryPrefixWhile") { $0.tryPrefix { _ in true } }
  }

  @Test func finishesAtTheFirstValueThatDoesNotSatisfyThePredicate() {
    let rig = Rig(perValue: .max(1)) { $0.tryPrefix { $0 < 2 } }
    #expect(rig.source.send(1) == .max(1))
    #expect(rig.source.send(2) == .none)
    #expect(
      rig.take() == [
        .subscription("TryPrefixWhile"), .requested(.unlimited), .value(1), .cancelled, .finished,
      ])
  }

  @Test func failsWithWhatIsThrown() {
    expectThrownErrorEnds(named: "TryPrefixWhile", sending: [1, 2], delivering: [1]) {
      $0.tryPrefix { if $0 > 1 { throw Oops(number: $0) } else { return true } }
    }
  }

  @Test func showsDownstream() {
    let rig = Rig { $0.tryPrefix { _ in true } }
    #expect(Mirror(reflecting: rig.subscription).children.map(\.label) == ["downstream"])
    #expect(rig.source.subscriber?.customMirror.children.map(\.label) == ["downstream"])
    #expect(rig.source.subscriber?.description == "TryPrefixWhile")
    #expect(rig.source.subscriber?.playgroundDescription as? String == "TryPrefixWhile")
  }

  @Test func ignoresWhatComesBeforeTheSubscription() {
    let rig = Rig(subscribesAtOnce: false) { $0.tryPrefix { _ in true } }
    #expect(rig.source.send(1) == .none)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    rig.source.sendSubscription()
    rig.source.send(2)
    #expect(rig.take() == [.subscription("TryPrefixWhile"), .requested(.unlimited), .value(2)])
  }
}
