import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct CountTests {
  @Test func countsToTheEnd() {
    expectReduction(named: "Count", of: [5, 6, 7], delivers: 3) { $0.count() }
    expectReduction(named: "Count", of: [], delivers: 0) { $0.count() }
  }

  @Test func isEqualIfUpstreamIs() {
    #expect(Publishers.Count(upstream: Just(1)) == Publishers.Count(upstream: Just(1)))
    #expect(Publishers.Count(upstream: Just(1)) != Publishers.Count(upstream: Just(2)))
  }
}
