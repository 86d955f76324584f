import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct PrefixWhileTests {
  @Test func isOrderly() {
    expectOrderlyStream(named: "PrefixWhile") { $0.prefix { _ in true } }
    expectStreamWithstandsReentrancy(named: "PrefixWhile") { $0.prefix { _ in true } }
  }

  @Test func finishesAtTheFirstValueThatDoesNotSatisfyThePredicate() {
    let rig = Rig(perValue: .max(1)) { $0.prefix { $0 < 2 } }
    #expect(rig.source.send(1) == .max(1))
    #expect(rig.source.send(2) == .none)
    rig.source.send(1)
    #expect(
      rig.take() == [.subscription("PrefixWhile"), .requested(.unlimited), .value(1), .cancelled, .finished])
  }

  @Test func showsDownstream() {
    let rig = Rig { $0.prefix { _ in true } }
    #expect(Mirror(reflecting: rig.subscription).children.map(\.label) == ["downstream"])
    #expect(rig.source.subscriber?.customMirror.children.map(\.label) == ["downstream"])
    #expect(rig.source.subscriber?.description == "PrefixWhile")
    #expect(rig.source.subscriber?.playgroundDescription as? String == "PrefixWhile")
  }

  @Test func ignoresWhatComesBeforeTheSubscription() {
    let rig = Rig(subscribesAtOnce: false) { $0.prefix { _ in true } }
    #expect(rig.source.send(1) == .none)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    rig.source.sendSubscription()
    rig.source.send(2)
    #expect(rig.take() == [.subscription("PrefixWhile"), .requested(.unlimited), .value(2)])
  }
}
