import TestSupport
import Testing

/// The fuzzer's seed inputs and findings: see `scripts/fuzz.sh`.
@Suite("Fuzzer's corpus for stores")
struct CorpusTests {
  @Test("every kept input is taken or refused, not worse", arguments: StoreProbe.Target.allCases)
  func replay(_ target: StoreProbe.Target) throws {
    #expect(try Corpus.replay(target, of: StoreProbe.self) > 0)
  }
}
