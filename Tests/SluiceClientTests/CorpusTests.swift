import TestSupport
import Testing

/// What the fuzzer starts from and what it has found: see `scripts/fuzz.sh`.
@Suite("Fuzzer's corpus for the client")
struct CorpusTests {
  @Test("every kept input is taken or refused, not worse", arguments: ClientProbe.Target.allCases)
  func replay(_ target: ClientProbe.Target) throws {
    #expect(try Corpus.replay(target, of: ClientProbe.self) > 0)
  }
}
