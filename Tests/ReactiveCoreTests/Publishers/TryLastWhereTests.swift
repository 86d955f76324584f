import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct TryLastWhereTests {
  @Test func deliversTheLastMatch() {
    expectReduction(named: "TryLastWhere", of: [1, 2, 3], delivers: 2) { $0.tryLast { $0 < 3 } }
    expectReduction(named: "TryLastWhere", of: [3], delivers: nil) { $0.tryLast { $0 < 3 } }
  }

  @Test func failsWithWhatIsThrown() {
    expectThrownErrorEnds(named: "TryLastWhere", sending: [1, 2]) {
      $0.tryLast { if $0 > 1 { throw Oops(number: $0) } else { return true } }
    }
  }
}
