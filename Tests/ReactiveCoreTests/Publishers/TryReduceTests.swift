import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct TryReduceTests {
  @Test func combinesAllValues() {
    expectReduction(named: "TryReduce", of: [1, 2, 3], delivers: 6) { $0.tryReduce(0) { $0 + $1 } }
    expectReduction(named: "TryReduce", of: [], delivers: 9) { $0.tryReduce(9) { $0 + $1 } }
  }

  @Test func failsWithWhatIsThrown() {
    expectThrownErrorEnds(named: "TryReduce", sending: [1, 2]) {
      $0.tryReduce(0) { if $1 > 1 { throw Oops(number: $1) } else { return $0 } }
    }
  }
}
