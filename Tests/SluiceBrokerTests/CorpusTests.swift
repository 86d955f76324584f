import TestSupport
import Testing

/// The fuzzer's seed inputs and findings: see `scripts/fuzz.sh`.
@Suite("Fuzzer's corpus for the broker")
struct CorpusTests {
  @Test("every kept input is taken or refused, not worse", arguments: BrokerProbe.Target.allCases)
  func replay(_ target: BrokerProbe.Target) throws {
    #expect(try Corpus.replay(target, of: BrokerProbe.self) > 0)
  }

  /// See ``RelayScene``.
  @Test("what another node sends reaches no client out of order", arguments: UInt64(1)...12)
  func randomLinks(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let bytes = (0..<600).map { _ -> UInt8 in
      let isAny = Int.random(in: 0..<3, using: &random) == 0
      return UInt8.random(in: 0...(isAny ? 255 : 5), using: &random)
    }
    try RelayScene.play(ProbeInput(bytes))
  }
}
