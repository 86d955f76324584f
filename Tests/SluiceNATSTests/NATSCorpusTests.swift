import TestSupport
import Testing

/// The fuzzer's seed inputs and findings: see `scripts/fuzz.sh`.
@Suite("Fuzzer's corpus for NATS")
struct NATSCorpusTests {
  @Test("every kept input is taken or refused, not worse", arguments: NATSProbe.Target.allCases)
  func replay(_ target: NATSProbe.Target) throws {
    #expect(try Corpus.replay(target, of: NATSProbe.self) > 0)
  }

  @Test("random bytes and words are taken or refused, not worse", arguments: NATSProbe.Target.allCases)
  func random(_ target: NATSProbe.Target) throws {
    var random = SeededRandom(seed: 18)
    let words = [
      "MSG ", "HMSG ", "a.b ", "1 ", "12 ", "\r\n", "NATS/1.0", " 503", "INFO {", "}", "PING\r\n", "-ERR '",
      "$JS.ACK.",
      ".", "1", "{\"stream\":\"S\",", "\"seq\":3", "\"count\":2", "\"error\":{", ",",
      "-----BEGIN USER NKEY SEED-----\n",
      "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY", "nats://", "[::1]", ":4222", "tls://",
    ].map { Array($0.utf8) }
    for _ in 0..<3_000 {
      var input: [UInt8] = []
      for _ in 0..<Int.random(in: 0..<40, using: &random) {
        input +=
          Bool.random(using: &random)
          ? words.randomElement(using: &random)! : [UInt8.random(in: 0...255, using: &random)]
      }
      try NATSProbe.run(target, on: input)
    }
  }
}
