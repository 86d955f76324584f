import SluiceLog
import SluiceWire

/// A record as a test sees it.
struct TestRecord: Equatable {
  var body: [UInt8]
  var isAttributed = false
  var time: Int64 = 0

  /// The bytes that it takes as an item.
  var itemSize: Int { RecordLayout.wordSize + body.count }
}

extension TopicLog {
  /// Appends records as one batch.
  @discardableResult
  func append(_ records: [TestRecord], at milliseconds: Int64) -> UInt64 {
    var bytes: [UInt8] = []
    for record in records {
      let word = RecordLayout.word(record.isAttributed ? .attributed : .plain, length: record.body.count)
      withUnsafeBytes(of: word.littleEndian) { bytes.append(contentsOf: $0) }
      bytes += record.body
    }
    return bytes.withUnsafeBytes { append($0, count: records.count, at: milliseconds) }
  }

  /// Appends plain records of these sizes as one batch.
  @discardableResult
  func append(sizes: [Int], at milliseconds: Int64 = 0) -> UInt64 {
    append(
      sizes.map { TestRecord(body: [UInt8](repeating: UInt8(truncatingIfNeeded: $0), count: $0)) },
      at: milliseconds)
  }

  /// Everything from a start on, with the offset of each record.
  func readAll(from start: StartPosition, now: Int64? = nil, bytes: Int = .max) throws -> [(
    UInt64, TestRecord
  )] {
    var reader = TestReader(cursor: cursor(at: start, now: now).cursor)
    return try reader.readAll(self, bytes: bytes)
  }

  /// The offsets that a late subscriber gets.
  func offsets(from start: StartPosition, now: Int64? = nil) throws -> [UInt64] {
    try readAll(from: start, now: now).map(\.0)
  }
}

/// Reads as a subscriber does: only what slices and the pending mark say, times included.
struct TestReader {
  var cursor: LogCursor
  var time: Int64?
  var hint: Segment?

  init(cursor: LogCursor) {
    self.cursor = cursor
  }

  /// The records of one slice. Throws when they aren't whole, aren't as many as announced, or have no time.
  mutating func decode(_ slice: LogSlice) throws -> [(UInt64, TestRecord)] {
    if let mark = cursor.pendingTimeMark {
      time = mark
      cursor.pendingTimeMark = nil
    }
    hint = slice.segment
    var records: [(UInt64, TestRecord)] = []
    if time == nil, RecordLayout.isRecord(RecordLayout.word(at: slice.bytes.baseAddress!)) {
      throw ReaderError.noTime
    }
    var iterator = BatchIterator(slice.bytes, time: time ?? 0)
    while let record = try iterator.next() {
      records.append(
        (
          slice.firstOffset + UInt64(records.count),
          TestRecord(body: [UInt8](record.body), isAttributed: record.isAttributed, time: record.time)
        ))
    }
    guard records.count == slice.count, slice.count > 0 else { throw ReaderError.wrongCount }
    time = iterator.time
    return records
  }

  mutating func readAll(_ log: TopicLog, bytes: Int = .max) throws -> [(UInt64, TestRecord)] {
    var records: [(UInt64, TestRecord)] = []
    while case .slice(let slice) = log.next(&cursor, bytes: bytes, hint: hint) {
      records += try decode(slice)
    }
    return records
  }
}

enum ReaderError: Error {
  case noTime
  case wrongCount
}

/// Random numbers that a seed determines: Steele, Lea and Flood's SplitMix64.
struct SplitMix: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &self) }

  mutating func one(in chances: Int) -> Bool { below(chances) == 0 }

  mutating func pick<Element>(_ choices: [Element]) -> Element { choices[below(choices.count)] }
}
