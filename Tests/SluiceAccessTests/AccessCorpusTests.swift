import TestSupport
import Testing

/// The fuzzer's seed inputs and findings: see `scripts/fuzz.sh`.
@Suite("Fuzzer's corpus for tokens and access files")
struct AccessCorpusTests {
  @Test("every kept input is taken or refused, not worse", arguments: AccessProbe.Target.allCases)
  func replay(_ target: AccessProbe.Target) throws {
    #expect(try Corpus.replay(target, of: AccessProbe.self) > 0)
  }
}
