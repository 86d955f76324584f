import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct ComparisonTests {
  @Test func findsTheExtremes() {
    expectReduction(named: "Comparison", of: [2, 3, 1], delivers: 3) { $0.max() }
    expectReduction(named: "Comparison", of: [2, 3, 1], delivers: 1) { $0.min() }
    expectReduction(named: "Comparison", of: [], delivers: nil) { $0.max() }
    expectReduction(named: "Comparison", of: [], delivers: nil) { $0.min() }
  }

  @Test func keepsTheFirstOfThoseThatAreEqual() {
    expectReduction(named: "Comparison", of: [11, 21, 12, 22], delivers: 21) { $0.max { $0 / 10 < $1 / 10 } }
    expectReduction(named: "Comparison", of: [21, 11, 22, 12], delivers: 11) { $0.min { $0 / 10 < $1 / 10 } }
  }
}
