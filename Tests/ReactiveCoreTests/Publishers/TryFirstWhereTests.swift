import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct TryFirstWhereTests {
  @Test func withoutAMatchItOnlyFinishes() {
    expectReduction(named: "TryFirstWhere", of: [1], delivers: nil) { $0.tryFirst { $0 > 1 } }
  }

  @Test func deliversTheFirstMatchAndCancels() {
    expectEarlyResult(named: "TryFirstWhere", sending: [1, 2], delivers: 2) { $0.tryFirst { $0 > 1 } }
  }

  @Test func failsWithWhatIsThrown() {
    expectThrownErrorEnds(named: "TryFirstWhere", sending: [1]) { $0.tryFirst { throw Oops(number: $0) } }
  }
}
