import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct FirstWhereTests {
  // Combine uses the same name.
  private let name = "TryFirst"

  @Test func withoutAMatchItOnlyFinishes() {
    expectReduction(named: name, of: [1], delivers: nil) { $0.first { $0 > 1 } }
  }

  @Test func deliversTheFirstMatchAndCancels() {
    expectEarlyResult(named: name, sending: [1, 2], delivers: 2) { $0.first { $0 > 1 } }
  }
}
