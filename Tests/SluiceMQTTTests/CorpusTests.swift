import SluiceMQTT
import TestSupport
import Testing

/// The fuzzer's seed inputs and findings: see `scripts/fuzz.sh`.
@Suite("Fuzzer's corpus for MQTT")
struct CorpusTests {
  @Test("every kept input is taken or refused, not worse", arguments: MQTTProbe.Target.allCases)
  func replay(_ target: MQTTProbe.Target) throws {
    #expect(try Corpus.replay(target, of: MQTTProbe.self) > 0)
  }

  @Test("random histories of sessions break no rule")
  func histories() throws {
    var random = SeededRandom.printed()
    for _ in 0..<500 {
      try MQTTProbe.run(.mqttSessions, on: random.bytes(.random(in: 20...800, using: &random)))
    }
  }

  @Test("packets with random damage do no harm, and are the same however they are cut")
  func damaged() throws {
    var random = SeededRandom.printed()
    for _ in 0..<5000 {
      let golden = goldenPackets.randomElement(using: &random)!
      var bytes: [UInt8] = [
        (golden.version == .v5 ? 0 : 1) | (golden.sender == .client ? 0 : 2),
        .random(in: 1...20, using: &random),
      ]
      bytes += golden.bytes + (goldenPackets.randomElement(using: &random)!).bytes
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        bytes[.random(in: 2..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
      }
      try MQTTProbe.run(.mqttPackets, on: bytes)
    }
  }

  @Test("random names and filters keep the rules")
  func topics() throws {
    var random = SeededRandom.printed()
    let pieces = ["a", "b", "/", "/", "+", "#", ".", "$share/g/", "\n", "\n", "*", ">", "\u{e9}", "_inbox"]
    for _ in 0..<5000 {
      let text = (0..<Int.random(in: 1...14, using: &random)).map { _ in pieces.randomElement(using: &random)!
      }
      try MQTTProbe.run(.mqttTopics, on: Array(text.joined().utf8))
    }
  }
}
