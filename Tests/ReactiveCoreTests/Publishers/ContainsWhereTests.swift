import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct ContainsWhereTests {
  @Test func deliversFalseAtTheEnd() {
    expectReduction(named: "ContainsWhere", of: [1, 2], delivers: false) { $0.contains { $0 > 2 } }
  }

  @Test func deliversTrueAsSoonAsItKnows() {
    expectEarlyResult(named: "ContainsWhere", sending: [1, 2], delivers: true) { $0.contains { $0 == 2 } }
  }
}
