import Glibc
import SluiceIO
import Testing

@testable import SluiceTool

@Suite("Reading records from input")
struct RecordReaderTests {
  private struct Outcome: Equatable {
    var records: [[UInt8]]
    var error: String?
  }

  /// Reads `input` from a pipe into which it is written `portion` bytes at a time.
  private func read(
    _ input: [UInt8], _ framing: Framing, limit: Int = 1 << 20, portion: Int = .max, stopAfter: Int = .max
  ) -> Outcome {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    let (source, sink) = (ends[0], ends[1])
    signal(SIGPIPE, SIG_IGN)
    Threads.start {
      var rest = input[...]
      while !rest.isEmpty {
        let part = rest.prefix(portion)
        guard part.withUnsafeBytes({ write(sink, $0.baseAddress, $0.count) }) == part.count else { break }
        rest = rest.dropFirst(part.count)
      }
      close(sink)
    }
    defer { close(source) }
    var outcome = Outcome(records: [])
    do throws(InputError) {
      var reader = RecordReader(source, limit: limit)
      try reader.forEach(framing) { record throws(InputError) in
        outcome.records.append([UInt8](record))
        return outcome.records.count < stopAfter
      }
    } catch {
      outcome.error = error.description
    }
    return outcome
  }

  private static func frames(_ records: [[UInt8]]) -> [UInt8] {
    records.flatMap { record in
      withUnsafeBytes(of: UInt32(record.count).littleEndian) { [UInt8]($0) } + record
    }
  }

  private static let newline = Framing.delimited(UInt8(ascii: "\n"))

  @Test(
    "Lines, however they arrive", arguments: [1, 2, 3, 7, .max],
    [
      ("", []), ("a\n", ["a"]), ("a", ["a"]), ("a\nbc\n", ["a", "bc"]), ("a\nbc", ["a", "bc"]),
      ("\n\n", ["", ""]),
      ("\na\n\nb", ["", "a", "", "b"]), ("a\r\n", ["a\r"]),
    ])
  func lines(portion: Int, example: (input: String, records: [String])) {
    let outcome = read(Array(example.input.utf8), Self.newline, portion: portion)
    #expect(outcome == Outcome(records: example.records.map { Array($0.utf8) }))
  }

  @Test("Other delimiters, and none")
  func delimiters() {
    let input: [UInt8] = [1, 10, 0, 0, 2]
    #expect(read(input, .delimited(0)) == Outcome(records: [[1, 10], [], [2]]))
    #expect(read(input, .whole) == Outcome(records: [input]))
    #expect(read([], .whole) == Outcome(records: [[]]))
  }

  @Test("Frames, however they arrive", arguments: [1, 3, 5, .max])
  func frames(portion: Int) {
    let records: [[UInt8]] = [[], [1], Array(repeating: 2, count: 300), [], [10, 0, 10]]
    #expect(read(Self.frames(records), .lengthPrefixed, portion: portion) == Outcome(records: records))
    #expect(read([], .lengthPrefixed) == Outcome(records: []))
  }

  @Test("Records that are longer than a block, next to short ones", arguments: [4096, 60_000, 1_000_000])
  func longRecords(portion: Int) {
    var records: [[UInt8]] = []
    for (index, count) in [5, 262_143, 262_144, 1, 700_000, 0, 262_145, 1 << 20, 3].enumerated() {
      records.append((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ index) | 0x80 })
    }
    #expect(read(Self.frames(records), .lengthPrefixed, portion: portion) == Outcome(records: records))
    let lines = records.flatMap { $0 + [UInt8(ascii: "\n")] }
    #expect(read(lines, Self.newline, portion: portion) == Outcome(records: records))
  }

  @Test("A record at the limit is taken, one byte more isn't, and what came before it was")
  func limit() {
    let fits = Array(repeating: UInt8(ascii: "x"), count: 100)
    let lines = fits + [10] + fits + [10]
    #expect(read(lines, Self.newline, limit: 100) == Outcome(records: [fits, fits]))
    let more = "is longer than the broker's limit of 99B; split it, or raise --max-record"
    #expect(
      read([65, 10] + lines, Self.newline, limit: 99) == Outcome(records: [[65]], error: "line 2 \(more)"))
    #expect(read(fits, Self.newline, limit: 99).error == "line 1 \(more)")
    #expect(read(fits, .delimited(0), limit: 99).error == "record 1 \(more)")
    #expect(read(fits, .whole, limit: 99).error == "the input \(more)")
    #expect(read(fits, .whole, limit: 100) == Outcome(records: [fits]))
  }

  @Test("A length that no record can have is refused before anything is read for it")
  func absurdLength() {
    let input = Self.frames([[1, 2]]) + [255, 255, 255, 255, 1]
    let outcome = read(input, .lengthPrefixed, limit: 1000)
    #expect(outcome.records == [[1, 2]])
    #expect(
      outcome.error?.hasPrefix(
        "record 2, at byte 6, has the length 4294967295, and the broker's limit is 1000B;") == true)
  }

  @Test(
    "Frames that are cut short are said to be", arguments: [1, 3, .max],
    [
      (1, "1 of the 4 bytes of its length"), (3, "3 of the 4 bytes of its length"), (4, "0 of 5 bytes"),
      (8, "4 of 5 bytes"),
    ])
  func truncated(portion: Int, example: (count: Int, how: String)) {
    let input = Self.frames([[7]]) + Self.frames([[1, 2, 3, 4, 5]]).prefix(example.count)
    let expected = Outcome(records: [[7]], error: "the input ends within record 2, which has \(example.how)")
    #expect(read(input, .lengthPrefixed, portion: portion) == expected)
  }

  @Test("A reader that has had enough gets no more")
  func stops() {
    #expect(read(Array("a\nb\nc\n".utf8), Self.newline, stopAfter: 2).records.count == 2)
    #expect(read(Self.frames([[1], [2], [3]]), .lengthPrefixed, stopAfter: 1).records == [[1]])
  }
}
