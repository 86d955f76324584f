import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct TryComparisonTests {
  @Test func findsTheExtremes() {
    expectReduction(named: "TryComparison", of: [2, 3, 1], delivers: 3) { $0.tryMax { $0 < $1 } }
    expectReduction(named: "TryComparison", of: [2, 3, 1], delivers: 1) { $0.tryMin { $0 < $1 } }
    expectReduction(named: "TryComparison", of: [], delivers: nil) { $0.tryMax { $0 < $1 } }
  }

  @Test func failsWithWhatIsThrown() {
    expectThrownErrorEnds(named: "TryComparison", sending: [1, 2]) {
      $0.tryMax { _, new in throw Oops(number: new) }
    }
    expectThrownErrorEnds(named: "TryComparison", sending: [1, 2]) {
      $0.tryMin { new, _ in throw Oops(number: new) }
    }
  }
}
