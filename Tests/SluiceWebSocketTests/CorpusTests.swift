import TestSupport
import Testing

/// The fuzzer's seed inputs and findings: see `scripts/fuzz.sh`.
@Suite("Fuzzer's corpus for WebSockets")
struct CorpusTests {
  @Test("every kept input is taken or refused, not worse", arguments: WebSocketProbe.Target.allCases)
  func replay(_ target: WebSocketProbe.Target) throws {
    #expect(try Corpus.replay(target, of: WebSocketProbe.self) > 0)
  }

  @Test("random bytes, and frames with random damage, do no harm")
  func random() throws {
    var random = SeededRandom.printed()
    for _ in 0..<2000 {
      var bytes: [UInt8] = [1, .random(in: 1...9, using: &random)]
      for opcode in [1, 9, 2, 8] as [UInt8] {
        bytes += frame(
          opcode, random.bytes(.random(in: 0...130, using: &random)), fin: .random(using: &random))
      }
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        bytes[.random(in: 2..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
      }
      try WebSocketProbe.run(.webSocketFrames, on: bytes)
    }
  }
}
