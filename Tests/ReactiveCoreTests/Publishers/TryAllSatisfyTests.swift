import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct TryAllSatisfyTests {
  @Test func deliversTrueAtTheEnd() {
    expectReduction(named: "TryAllSatisfy", of: [1, 2], delivers: true) { $0.tryAllSatisfy { $0 > 0 } }
  }

  @Test func deliversFalseAsSoonAsItKnows() {
    expectEarlyResult(named: "TryAllSatisfy", sending: [1, 2], delivers: false) {
      $0.tryAllSatisfy { $0 < 2 }
    }
  }

  @Test func failsWithWhatIsThrown() {
    expectThrownErrorEnds(named: "TryAllSatisfy", sending: [1]) {
      $0.tryAllSatisfy { throw Oops(number: $0) }
    }
  }
}
