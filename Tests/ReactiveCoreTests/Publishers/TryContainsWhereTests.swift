import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct TryContainsWhereTests {
  @Test func deliversFalseAtTheEnd() {
    expectReduction(named: "TryContainsWhere", of: [1, 2], delivers: false) { $0.tryContains { $0 > 2 } }
  }

  @Test func deliversTrueAsSoonAsItKnows() {
    expectEarlyResult(named: "TryContainsWhere", sending: [1, 2], delivers: true) {
      $0.tryContains { $0 == 2 }
    }
  }

  @Test func failsWithWhatIsThrown() {
    expectThrownErrorEnds(named: "TryContainsWhere", sending: [1]) {
      $0.tryContains { throw Oops(number: $0) }
    }
  }
}
