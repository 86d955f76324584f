import SluiceWire
import TestSupport
import Testing

/// The fuzzer's corpus and its findings: see `scripts/fuzz.sh`.
@Suite("Fuzzer's corpus")
struct CorpusTests {
  @Test("every kept input is taken or refused, not worse", arguments: WireProbe.Target.allCases)
  func replay(_ target: WireProbe.Target) throws {
    #expect(try Corpus.replay(target, of: WireProbe.self) > 0)
  }

  @Test("frames of every type that the protocol has are fuzzed")
  func everyFrame() {
    let known = (0...0xFF as ClosedRange<UInt8>).map { FrameType(rawValue: $0) }.filter(Self.isKnown)
    let fuzzed = WireProbe.frameTypes.map { $0.type } + [FrameType.publish, .deliver]
    #expect(Set(fuzzed).count == fuzzed.count)
    for type in known { #expect(fuzzed.contains(type), "\(type) is missing in WireProbe.frameTypes") }
    #expect(known.count == fuzzed.count)
  }

  /// Whether at least one side may receive it, on stream 0 or on another.
  private static func isKnown(_ type: FrameType) -> Bool {
    for side in [Side.broker, .client] {
      for stream in 0...1 as ClosedRange<UInt32> {
        let header = FrameHeader(length: 0, type: type, stream: stream)
        do {
          if try header.admission(at: side) == .take { return true }
        } catch {
          continue
        }
      }
    }
    return false
  }
}
