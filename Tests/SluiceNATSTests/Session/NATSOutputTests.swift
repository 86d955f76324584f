import SluiceIO
import TestSupport
import Testing

@testable import SluiceNATS

@Suite("Output of a NATS session, against a model")
struct NATSOutputTests {
  @Test(
    "what waits is what was encoded and neither written nor taken back", arguments: 0..<20 as Range<UInt64>)
  func output(seed: UInt64) {
    var random = SluiceIO.SeededRandom(seed: seed)
    var output = NATSOutput()
    var (encoded, written): ([UInt8], Int) = ([], 0)
    for step in 0..<400 {
      switch random.next(below: 5) {
      case 0, 1:
        let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: step), count: random.next(in: 0...20_000))
        output.append { $0 += bytes }
        encoded += bytes
      case 2:
        let kept = KeptBytes(
          [UInt8](repeating: UInt8(truncatingIfNeeded: step), count: random.next(in: 0...9_000)))
        output.append(NATSInsert(at: 0, kept.memory, of: kept))
        encoded += kept.memory
      case 3:
        let count = random.next(in: 0...output.count)
        output.took(count)
        written += count
      default:
        let mark = UInt64(random.next(in: written...encoded.count))
        output.rewind(to: mark)
        encoded.removeLast(encoded.count - Int(mark))
      }
      #expect(output.count == encoded.count - written)
      #expect((output.written, output.encoded) == (UInt64(written), UInt64(encoded.count)))
      #expect(output.waiting.elementsEqual(encoded[written...]))
    }
  }

  @Test(
    "a transport that takes a little at a time gets copied bytes and inserts in their order",
    arguments: 0..<20 as Range<UInt64>)
  func transport(seed: UInt64) {
    var random = SluiceIO.SeededRandom(seed: seed)
    let stream = RecordingStream()
    var output = NATSOutput()
    var encoded: [UInt8] = []
    for step in 0..<300 {
      let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: step), count: random.next(in: 0...400))
      if random.next(below: 2) == 0 {
        output.append { $0 += bytes }
      } else {
        let kept = KeptBytes(bytes)
        output.append(NATSInsert(at: 0, kept.memory, of: kept))
      }
      encoded += bytes
      stream.capacities = [random.next(in: 0...500)]
      #expect(output.write(to: stream) == nil)
      #expect(stream.bytes.elementsEqual(encoded[..<Int(output.written)]))
    }
    stream.capacities = []
    #expect(output.write(to: stream) == nil)
    #expect(stream.bytes == encoded && output.count == 0)
  }
}
