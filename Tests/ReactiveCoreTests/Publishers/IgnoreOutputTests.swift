import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct IgnoreOutputTests {
  @Test func passesOnlyTheCompletion() {
    expectReduction(named: "IgnoreOutput", of: [1, 2], delivers: nil) { $0.ignoreOutput() }
  }

  @Test func isEqualIfUpstreamIs() {
    #expect(Publishers.IgnoreOutput(upstream: Just(1)) == Publishers.IgnoreOutput(upstream: Just(1)))
  }
}
