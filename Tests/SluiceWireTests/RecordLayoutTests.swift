import SluiceWire
import TestSupport
import Testing

@Suite("Record layout")
struct RecordLayoutTests {
  @Test(
    "a word is a length of 30 bits and a kind of two",
    arguments: [
      (0x0000_0000, RecordLayout.Kind.plain, 0),
      (0x0000_0080, .plain, 128),
      (0x3FFF_FFFF, .plain, RecordLayout.maximumBody),
      (0x4000_0001, .attributed, 1),
      (0x8000_0008, .timeMark, 8),
      (0xFFFF_FFFF, .reserved, RecordLayout.maximumBody),
    ])
  func words(_ word: UInt32, _ kind: RecordLayout.Kind, _ length: Int) {
    #expect(RecordLayout.kind(word) == kind)
    #expect(RecordLayout.length(word) == length)
    #expect(RecordLayout.word(kind, length: length) == word)
    #expect(RecordLayout.isRecord(word) == (kind == .plain || kind == .attributed))
  }

  @Test("a word is read little-endian from any address")
  func reading() {
    let bytes = [UInt8](hex: "ee 80000040 ee")
    #expect(bytes.withUnsafeBytes { RecordLayout.word(at: $0.baseAddress! + 1) } == 0x4000_0080)
  }

  @Test(
    "a time mark is twelve bytes",
    arguments: [(Int64(0), "0000000000000000"), (-1, "ffffffffffffffff"), (0x0102, "0201000000000000")])
  func timeMark(_ time: Int64, _ hex: String) throws {
    var bytes = [UInt8](repeating: 0xEE, count: 1 + RecordLayout.timeMarkSize)
    bytes.withUnsafeMutableBytes { RecordLayout.writeTimeMark(time, at: $0.baseAddress! + 1) }
    #expect(bytes.hex == [UInt8](hex: "ee 08000080" + hex).hex)
    #expect(try walk(Array(bytes[1...])).time == time)
  }
}
