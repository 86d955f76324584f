import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct LastWhereTests {
  @Test func deliversTheLastMatch() {
    expectReduction(named: "LastWhere", of: [1, 2, 3], delivers: 2) { $0.last { $0 < 3 } }
    expectReduction(named: "LastWhere", of: [3], delivers: nil) { $0.last { $0 < 3 } }
  }
}
