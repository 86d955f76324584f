import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct PrefixWhileTests {
  @Test func isOrderly() {
    expectOrderlyStream(named: "PrefixWhile") { $0.prefix { _ in true } }
    expectOrderlyStream(named: "TryPrefixWhile") { $0.tryPrefix { _ in true } }
  }

  @Test func finishesAtTheFirstValueThatDoesNotSatisfyThePredicate() {
    let rig = Rig(perValue: .max(1)) { $0.prefix { $0 < 2 } }
    #expect(rig.source.send(1) == .max(1))
    #expect(rig.source.send(2) == .none)
    rig.source.send(1)
    #expect(
      rig.take() == [.subscription("PrefixWhile"), .requested(.unlimited), .value(1), .cancelled, .finished])
  }

  @Test func failsWithWhatIsThrown() {
    let rig = Rig { $0.tryPrefix { if $0 > 1 { throw Oops(number: $0) } else { return true } } }
    rig.source.send(1)
    rig.source.send(2)
    #expect(
      rig.take() == [
        .subscription("TryPrefixWhile"), .requested(.unlimited), .value(1), .cancelled,
        .failed(Oops(number: 2)),
      ])
  }
}
