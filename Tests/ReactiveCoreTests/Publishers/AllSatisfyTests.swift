import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct AllSatisfyTests {
  @Test func deliversTrueAtTheEnd() {
    expectReduction(named: "AllSatisfy", of: [1, 2], delivers: true) { $0.allSatisfy { $0 > 0 } }
    expectReduction(named: "AllSatisfy", of: [], delivers: true) { $0.allSatisfy { $0 > 0 } }
  }

  @Test func deliversFalseAsSoonAsItKnows() {
    expectEarlyResult(named: "AllSatisfy", sending: [1, 2], delivers: false) { $0.allSatisfy { $0 < 2 } }
  }
}
