import SluiceWire
import Testing

@testable import SluiceLog

@Suite("Loaded segments")
struct SegmentLoaderTests {
  /// Batches as a store has them: a mark, then so many records of one byte.
  private static func batch(_ records: [UInt8], time: Int64) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: RecordLayout.timeMarkSize)
    bytes.withUnsafeMutableBytes { RecordLayout.writeTimeMark(time, at: $0.baseAddress!) }
    for record in records { bytes += [1, 0, 0, 0, record] }
    return bytes
  }

  private static func segment(_ batches: [(records: [UInt8], time: Int64)], from offset: UInt64) -> Segment {
    var loader = SegmentLoader(baseOffset: offset, capacity: 4096, pool: SegmentPool())
    for (records, time) in batches {
      batch(records, time: time).withUnsafeBytes {
        loader.append($0, count: records.count, recordBytes: 5 * records.count, firstTime: time)
      }
    }
    return loader.finish()
  }

  @Test("are read from any record on, with its time")
  func reading() throws {
    let segment = Self.segment([([1, 2], 10), ([3, 4, 5], 20)], from: 100)
    #expect(segment.endOffset == 105)
    let log = TopicLog(retention: .everything, pool: SegmentPool(), firstOffset: 200)
    for offset in 100..<UInt64(105) {
      var cursor = LogCursor(at: offset, in: segment)
      guard case .slice(let slice) = log.next(&cursor, bytes: 4096, hint: segment) else {
        Issue.record("nothing at \(offset)")
        continue
      }
      #expect(slice.firstOffset == offset)
      #expect(slice.count == Int(105 - offset))
      var iterator = BatchIterator(slice.bytes, time: cursor.pendingTimeMark ?? -1)
      let first = try #require(try iterator.next())
      #expect(first.time == (offset < 102 ? 10 : 20))
      #expect(first.body[0] == UInt8(offset - 99))
      #expect(cursor.nextOffset == 105)
    }
  }

  @Test("have no more to give at their end, and the log says what it has")
  func end() {
    let segment = Self.segment([([1, 2], 10)], from: 100)
    let log = TopicLog(retention: .everything, pool: SegmentPool(), firstOffset: 200)
    var cursor = LogCursor(at: 102, in: segment)
    guard case .lagged(let missed) = log.next(&cursor, bytes: 10, hint: segment) else {
      Issue.record("the log has nothing below 200")
      return
    }
    #expect(missed == 98)
  }
}
