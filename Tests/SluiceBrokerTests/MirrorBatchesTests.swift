import SluiceLog
import SluiceWire
import Testing

@testable import SluiceBroker

/// Batches of another node, appended to a log of this one.
@Suite struct MirrorBatchesTests {
  private let log = TopicLog(
    retention: .everything, pool: SegmentPool(maximumPooledBytes: 0), firstOffset: 10)

  /// Records of those lengths, and marks with those times.
  private enum Item {
    case record(Int)
    case mark(Int64)
  }

  private func batch(_ items: [Item]) -> [UInt8] {
    var bytes: [UInt8] = []
    for item in items {
      switch item {
      case .record(let length):
        withUnsafeBytes(of: RecordLayout.word(.plain, length: length).littleEndian) { bytes += Array($0) }
        bytes += [UInt8](repeating: UInt8(length), count: length)
      case .mark(let time):
        var mark = [UInt8](repeating: 0, count: RecordLayout.timeMarkSize)
        mark.withUnsafeMutableBytes { RecordLayout.writeTimeMark(time, at: $0.baseAddress!) }
        bytes += mark
      }
    }
    return bytes
  }

  private func times() throws -> [Int64] {
    var cursor = log.cursor(at: .earliest).cursor
    var times: [Int64] = []
    while case .slice(let slice) = log.next(&cursor, bytes: .max) {
      var iterator = BatchIterator(slice.bytes, time: cursor.pendingTimeMark.take() ?? 0)
      while let record = try iterator.next() { times.append(record.time) }
    }
    return times
  }

  @Test func recordsKeepTheirOffsetsAndTheirTimes() throws {
    var batches = MirrorBatches()
    let frames: [([Item], UInt32)] = [
      ([.mark(5), .record(1), .record(2)], 2), ([.record(3), .mark(9), .record(4), .mark(9), .record(0)], 3),
      ([.mark(12)], 0), ([.record(7)], 1),
    ]
    for (items, count) in frames {
      try batch(items).withUnsafeBytes { try batches.append($0, count: count, to: log) }
    }
    #expect(log.head == 16)
    #expect(try times() == [5, 5, 5, 9, 9, 12])
  }

  @Test func aBatchThatContradictsItselfIsRefused() {
    let good = batch([.mark(5), .record(3), .record(2)])
    var unknown = good
    unknown[3] = 0xC0
    for (bytes, count) in [(good, UInt32(1)), (good, 3), (unknown, 2)] {
      #expect(throws: WireError.self) {
        var batches = MirrorBatches()
        try bytes.withUnsafeBytes { try batches.append($0, count: count, to: log) }
      }
    }
    for length in good.indices.dropFirst() {
      #expect(throws: WireError.self) {
        var batches = MirrorBatches()
        try good[..<length].withUnsafeBytes { try batches.append($0, count: 2, to: log) }
      }
    }
  }
}
