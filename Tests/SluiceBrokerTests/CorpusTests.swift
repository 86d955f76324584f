import TestSupport
import Testing

/// What the fuzzer starts from and what it has found: see `scripts/fuzz.sh`.
@Suite("Fuzzer's corpus for the broker")
struct CorpusTests {
  @Test("every kept input is taken or refused, not worse", arguments: BrokerProbe.Target.allCases)
  func replay(_ target: BrokerProbe.Target) throws {
    #expect(try Corpus.replay(target, of: BrokerProbe.self) > 0)
  }
}
