import TestSupport
import Testing

/// The fuzzer's seed inputs and findings: see `scripts/fuzz.sh`.
@Suite("Fuzzer's corpus for the programs")
struct CorpusTests {
  @Test("every kept input is taken or refused, not worse", arguments: CommandProbe.Target.allCases)
  func replay(_ target: CommandProbe.Target) throws {
    #expect(try Corpus.replay(target, of: CommandProbe.self) > 0)
  }
}
