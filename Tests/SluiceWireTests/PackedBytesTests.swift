import SluiceWire
import TestSupport
import Testing

@Suite struct PackedBytesTests {
  @Test func whatIsWrittenIsRead() {
    var random = SeededRandom.printed()
    let numbers: [UInt64] =
      [0, 1, 127, 128, 16_383, 16_384, .max - 1, .max]
      + (0..<1_000).map { _ in
        UInt64.random(in: .min ... .max, using: &random) >> UInt64.random(in: 0..<64, using: &random)
      }
    var writer = PackedWriter()
    for number in numbers {
      writer.number(number)
      writer.flags(number & 1 != 0, number & 2 != 0, false, true)
      writer.text("é\(number)")
    }
    var reader = PackedReader(writer.bytes)
    for number in numbers {
      #expect(reader.number() == number)
      let flags = reader.flags()
      #expect([flags[0], flags[1], flags[2], flags[3]] == [number & 1 != 0, number & 2 != 0, false, true])
      #expect(reader.text() == "é\(number)")
    }
  }

  @Test func smallNumbersTakeAByte() {
    var writer = PackedWriter()
    writer.number(127 as UInt64)
    writer.number(0 as UInt16)
    writer.text("")
    #expect(writer.bytes.count == 3)
  }
}
