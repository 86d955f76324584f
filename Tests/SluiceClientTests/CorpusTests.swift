import TestSupport
import Testing

/// The fuzzer's seed inputs and findings: see `scripts/fuzz.sh`.
@Suite("Fuzzer's corpus for the client")
struct CorpusTests {
  @Test("every kept input is taken or refused, not worse", arguments: ClientProbe.Target.allCases)
  func replay(_ target: ClientProbe.Target) throws {
    #expect(try Corpus.replay(target, of: ClientProbe.self) > 0)
  }
}
