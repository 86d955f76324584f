import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct LastTests {
  @Test func deliversTheLast() {
    expectReduction(named: "Last", of: [1, 2, 3], delivers: 3) { $0.last() }
    expectReduction(named: "Last", of: [], delivers: nil) { $0.last() }
  }

  @Test func isEqualIfUpstreamIs() {
    #expect(Publishers.Last(upstream: Just(1)) == Publishers.Last(upstream: Just(1)))
  }
}
