import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct FirstTests {
  @Test func withoutAValueItOnlyFinishes() {
    expectReduction(named: "First", of: [], delivers: nil) { $0.first() }
  }

  @Test func deliversTheFirstAndCancels() {
    expectEarlyResult(named: "First", sending: [1], delivers: 1) { $0.first() }
  }

  @Test func isEqualIfUpstreamIs() {
    #expect(Publishers.First(upstream: Just(1)) == Publishers.First(upstream: Just(1)))
  }
}
