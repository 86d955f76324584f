import SluiceIO
import SluiceLog
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Gathering frames and records for a write, and the remainder after a short write.
struct DeliveryTests {
  /// A log with one batch of records with these payload sizes.
  private func log(_ sizes: [Int]) -> TopicLog {
    let log = TopicLog(retention: .everything, pool: SegmentPool())
    SessionProbe.batch(sizes).bytes.withUnsafeBytes { _ = log.append($0, count: sizes.count, at: 7) }
    return log
  }

  private func slices(_ log: TopicLog, records: UInt64) -> [LogSlice] {
    var cursor = log.cursor(at: .earliest).cursor
    var slices: [LogSlice] = []
    while case .slice(let slice) = log.next(&cursor, records: records, bytes: .max) { slices.append(slice) }
    return slices
  }

  private func deliver(_ slice: LogSlice, mark: Int64? = nil, stream: UInt32) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: FrameHeader.size + DeliverHeader.size)
    let markBytes = mark == nil ? 0 : RecordLayout.timeMarkSize
    bytes.withUnsafeMutableBytes {
      DeliverHeader(firstOffset: slice.firstOffset, count: UInt32(slice.count))
        .write(at: $0.baseAddress!, stream: stream, batchLength: markBytes + slice.bytes.count)
    }
    if let mark {
      bytes += [UInt8](repeating: 0, count: markBytes)
      bytes.withUnsafeMutableBytes {
        RecordLayout.writeTimeMark(mark, at: $0.baseAddress! + FrameHeader.size + DeliverHeader.size)
      }
    }
    return bytes + slice.bytes
  }

  // MARK: WriteBatch

  @Test func framesAndRecordsAreWrittenInTheOrderOfGathering() throws {
    let log = log([3, 0, 500])
    let writes = WriteBatch()
    var expected: [UInt8] = []
    var answers = Pong(token: 1).encoded(stream: 0) + Cancelled().encoded(stream: 4)
    expected += answers
    writes.append(&answers)
    #expect(answers.isEmpty)
    for (index, slice) in slices(log, records: 1).enumerated() {
      let mark: Int64? = index == 1 ? 99 : nil
      writes.append(Live(nextOffset: UInt64(index)), stream: 9)
      writes.append(slice, mark: mark, stream: 9)
      expected += Live(nextOffset: UInt64(index)).encoded(stream: 9) + deliver(slice, mark: mark, stream: 9)
    }
    #expect(writes.bytes == expected.count)

    let stream = RecordingStream()
    let rest = try writes.write(to: stream).get()
    #expect(rest.isEmpty)
    #expect(stream.bytes == expected)
    #expect(stream.writes == 1)
    #expect(writes.isEmpty)
    #expect(writes.bytes == 0)
  }

  @Test func framesThatFollowOneAnotherShareAVector() throws {
    let writes = WriteBatch()
    for token in UInt64(0)..<100 { writes.append(Pong(token: token), stream: 0) }
    let stream = RecordingStream()
    _ = try writes.write(to: stream).get()
    #expect(stream.mostVectors == 1)
  }

  @Test func whatAShortWriteLeavesIsWrittenLaterByteForByte() throws {
    let log = log([10, 0, 300, 2000, 1])
    for taken in 0..<2600 {
      let writes = WriteBatch()
      var expected: [UInt8] = []
      var answers = Pong(token: 3).encoded(stream: 0)
      expected += answers
      writes.append(&answers)
      for slice in slices(log, records: 2) {
        writes.append(slice, mark: 5, stream: 1)
        expected += deliver(slice, mark: 5, stream: 1)
      }
      let stream = RecordingStream()
      stream.capacities = [taken, 0, 1, 700, .max]
      var pending = try writes.write(to: stream).get()
      #expect(pending.isEmpty == (taken >= expected.count))
      #expect(pending.byteCount == expected.count - min(taken, expected.count))
      // The write batch is reused meanwhile.
      writes.append(Pong(token: .max), stream: 0)
      var written: [Int] = []
      while !pending.isEmpty { written.append(try pending.write(to: stream).get()) }
      #expect(stream.bytes == expected, "\(taken) bytes were taken at first")
      #expect(written.first == nil || written.first == 0)
    }
  }

  @Test func itIsFullBeforeItOverflows() throws {
    let log = log([Int](repeating: 1, count: 2000))
    let writes = WriteBatch()
    var expected: [UInt8] = []
    var count = 0
    for slice in slices(log, records: 1) {
      guard writes.hasRoom else { break }
      writes.append(Live(nextOffset: 0), stream: 1)
      writes.append(slice, mark: 1, stream: 1)
      writes.append(Complete(.finished), stream: 1)
      expected +=
        Live(nextOffset: 0).encoded(stream: 1) + deliver(slice, mark: 1, stream: 1)
        + Complete(.finished).encoded(stream: 1)
      count += 1
    }
    #expect(count > 100 && count < 2000)
    let stream = RecordingStream()
    _ = try writes.write(to: stream).get()
    #expect(stream.bytes == expected)
    #expect(writes.hasRoom)
  }

  @Test func longAnswersAreTakenWhole() throws {
    let writes = WriteBatch()
    var answers: [UInt8] = []
    for token in UInt64(0)..<20_000 { Pong(token: token).encode(stream: 0, into: &answers) }
    let expected = answers
    writes.append(&answers)
    writes.append(Cancelled(), stream: 1)
    let stream = RecordingStream()
    stream.capacities = [100_000, .max]
    var pending = try writes.write(to: stream).get()
    _ = try pending.write(to: stream).get()
    #expect(stream.bytes == expected + Cancelled().encoded(stream: 1))
  }

  @Test func aFailureIsPassedOn() throws {
    let error = IOError(action: "write", code: 32)
    let writes = WriteBatch()
    writes.append(Cancelled(), stream: 1)
    let stream = RecordingStream()
    stream.error = error
    #expect(throws: error) { try writes.write(to: stream).get() }
    #expect(writes.isEmpty)

    stream.error = nil
    stream.capacities = [1]
    writes.append(Cancelled(), stream: 1)
    var pending = try writes.write(to: stream).get()
    stream.error = error
    #expect(throws: error) { try pending.write(to: stream).get() }
  }

  // MARK: Pending output

  @Test func pendingRecordsKeepTheirMemoryButNotThatOfARetiredSegment() throws {
    let pool = SegmentPool(maximumPooledBytes: 0)
    let log = TopicLog(retention: .everything, pool: pool)
    SessionProbe.batch([300, 300]).bytes.withUnsafeBytes { _ = log.append($0, count: 2, at: 7) }
    let writes = WriteBatch()
    var expected: [UInt8] = []
    for slice in slices(log, records: 2) {
      writes.append(slice, mark: nil, stream: 1)
      expected += deliver(slice, stream: 1)
    }
    let stream = RecordingStream()
    stream.capacities = [30, .max]
    var pending = try writes.write(to: stream).get()
    log.removeAll()
    #expect(pool.bytesInUse > 0)
    pending.releaseRetiredSegments()
    #expect(pool.bytesInUse == 0)
    _ = try pending.write(to: stream).get()
    #expect(stream.bytes == expected)
  }

  @Test func singleRecordsKeepNoMemoryOfTheLog() throws {
    let pool = SegmentPool(maximumPooledBytes: 0)
    let log = TopicLog(retention: .everything, pool: pool)
    SessionProbe.batch([100]).bytes.withUnsafeBytes { _ = log.append($0, count: 1, at: 7) }
    let writes = WriteBatch()
    var expected: [UInt8] = []
    for slice in slices(log, records: 1) {
      writes.append(slice, mark: nil, stream: 1)
      expected += deliver(slice, stream: 1)
    }
    log.removeAll()
    #expect(pool.bytesInUse == 0)
    let stream = RecordingStream()
    _ = try writes.write(to: stream).get()
    #expect(stream.bytes == expected)
  }

  // MARK: The ready queue

  @Test func theReadyQueueIsFirstInFirstOut() {
    var random = SeededRandom.printed()
    var queue = ReadyQueue<Int>()
    var model: [Int] = []
    for number in 0..<20_000 {
      // More appends, then more removals, so that the queue grows, shrinks and runs empty.
      if Int.random(in: 0..<100, using: &random) < (number / 1000 % 2 == 0 ? 60 : 40) {
        queue.append(number)
        model.append(number)
      } else {
        #expect(queue.popFirst() == (model.isEmpty ? nil : model.removeFirst()))
      }
      #expect(queue.count == model.count)
      #expect(queue.isEmpty == model.isEmpty)
    }
    while let element = queue.popFirst() { #expect(element == model.removeFirst()) }
    #expect(model.isEmpty)
  }
}
