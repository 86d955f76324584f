import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct ContainsTests {
  @Test func deliversFalseAtTheEnd() {
    expectReduction(named: "Contains", of: [1, 2], delivers: false) { $0.contains(3) }
    expectReduction(named: "Contains", of: [], delivers: false) { $0.contains(3) }
  }

  @Test func deliversTrueAsSoonAsItKnows() {
    expectEarlyResult(named: "Contains", sending: [1, 2], delivers: true) { $0.contains(2) }
  }

  @Test func isEqualIfItsPartsAre() {
    #expect(
      Publishers.Contains(upstream: Just(1), output: 1) == Publishers.Contains(upstream: Just(1), output: 1))
    #expect(
      Publishers.Contains(upstream: Just(1), output: 1) != Publishers.Contains(upstream: Just(1), output: 2))
  }
}
