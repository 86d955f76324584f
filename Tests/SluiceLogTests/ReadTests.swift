import SluiceLog
import SluiceWire
import Testing

@Suite struct ReadTests {
  @Test func whatWasAppendedIsReadWithOffsetsAndTimes() throws {
    let log = TopicLog(retention: .everything, pool: SegmentPool(), firstOffset: 5)
    let records = [[], [1], [2, 2]].map { TestRecord(body: $0) }
    #expect(log.append(records, at: 1_000) == 5)
    #expect(log.append([TestRecord(body: [9], isAttributed: true)], at: 1_001) == 8)
    #expect(log.head == 9)
    let read = try log.readAll(from: .earliest)
    #expect(read.map(\.0) == [5, 6, 7, 8])
    #expect(read.map(\.1.time) == [1_000, 1_000, 1_000, 1_001])
    #expect(read.map(\.1.body) == [[], [1], [2, 2], [9]])
    #expect(read.map(\.1.isAttributed) == [false, false, false, true])
  }

  @Test func timesNeverGoBack() throws {
    let log = TopicLog(retention: .everything, pool: SegmentPool())
    for time in [50, 40, 60, 10] as [Int64] { log.append(sizes: [1], at: time) }
    #expect(try log.readAll(from: .earliest).map(\.1.time) == [50, 50, 60, 60])
  }

  @Test func anEmptyBatchDoesNothing() {
    let log = TopicLog(retention: .everything, pool: SegmentPool(), firstOffset: 3)
    #expect(log.append([], at: 1) == 3)
    #expect(log.head == 3)
    #expect(log.statistics().memoryBytes == 0)
  }

  @Test func unlimitedDemandTakesEverythingUpToTheSegmentsEndInOneSlice() throws {
    let log = TopicLog(retention: .everything, pool: SegmentPool())
    for _ in 0..<10 { log.append(sizes: [10, 0, 20], at: 7) }
    var cursor = log.cursor(at: .earliest).cursor
    let slice = try #require(log.next(&cursor, bytes: 4096).slice)
    #expect(slice.count == 30)
    #expect(slice.bytes.count == RecordLayout.timeMarkSize + 10 * (14 + 4 + 24))
    #expect(log.next(&cursor, bytes: 4096, hint: slice.segment).isCaughtUp)
  }

  @Test(arguments: [Int.min, -1, 0, 1])
  func oneRecordComesHoweverSmallTheBudget(bytes: Int) throws {
    let log = TopicLog(retention: .everything, pool: SegmentPool())
    log.append(sizes: [500, 1], at: 0)
    var cursor = log.cursor(at: .earliest).cursor
    #expect(try #require(log.next(&cursor, bytes: bytes).slice).count == 1)
    #expect(cursor.nextOffset == 1)
  }

  @Test func noDemandGetsNothing() {
    let log = TopicLog(retention: .everything, pool: SegmentPool())
    log.append(sizes: [1], at: 0)
    var cursor = log.cursor(at: .earliest).cursor
    #expect(log.next(&cursor, records: 0, bytes: .max).isCaughtUp)
    #expect(cursor.nextOffset == 0)
  }

  @Test func demandIsNeverExceededWhateverTheBatches() throws {
    let log = TopicLog(retention: .everything, pool: SegmentPool())
    for count in [1, 5000, 1, 300] { log.append(sizes: [Int](repeating: 20, count: count), at: 0) }
    for demand in [1, 32, 33, 34, 999, 5000, 5001] as [UInt64] {
      var cursor = log.cursor(at: .earliest).cursor
      while case .slice(let slice) = log.next(&cursor, records: demand, bytes: .max) {
        #expect(slice.count <= demand)
      }
      #expect(cursor.nextOffset == log.head)
    }
  }

  @Test func aBatchLargerThanTheRestOfASegmentIsSplitBetweenRecords() throws {
    let log = TopicLog(retention: .everything, segmentBytes: 1024, pool: SegmentPool())
    for _ in 0..<5 { log.append(sizes: [Int](repeating: 60, count: 11), at: 3) }
    var reader = TestReader(cursor: log.cursor(at: .earliest).cursor)
    var slices = 0
    var records: [(UInt64, TestRecord)] = []
    while case .slice(let slice) = log.next(&reader.cursor, bytes: .max, hint: reader.hint) {
      records += try reader.decode(slice)
      slices += 1
    }
    #expect(records.map(\.0) == Array(0..<55))
    #expect(records.allSatisfy { $0.1.body.count == 60 && $0.1.time == 3 })
    // 15 records and a mark fill a segment.
    #expect(slices == 4)
  }

  @Test func aRecordLargerThanASegmentGetsOneOfItsOwn() throws {
    let pool = SegmentPool()
    let log = TopicLog(retention: .everything, segmentBytes: 1024, pool: pool)
    log.append(sizes: [10, 100_000, 10], at: 0)
    #expect(try log.readAll(from: .earliest).map(\.1.body.count) == [10, 100_000, 10])
    #expect(log.statistics().memoryBytes == 1024 + 100_016 + 1024)
  }

  @Test func aReaderThatBeginsInTheMiddleIsToldTheTimeOnce() throws {
    let log = TopicLog(retention: .everything, pool: SegmentPool())
    log.append(sizes: [1, 2, 3], at: 10)
    log.append(sizes: [4], at: 20)

    // Within a batch the cursor has a time mark to send.
    let middle = log.cursor(at: .offset(1)).cursor
    #expect(middle.pendingTimeMark == 10)

    // Ahead of a mark it needn't be, and isn't.
    var cursor = log.cursor(at: .offset(3)).cursor
    let slice = try #require(log.next(&cursor, bytes: .max).slice)
    #expect(cursor.pendingTimeMark == nil)
    #expect(!RecordLayout.isRecord(RecordLayout.word(at: slice.bytes.baseAddress!)))

    // At the head it depends on what comes.
    for time in [20, 21] as [Int64] {
      var cursor = log.cursor(at: .new).cursor
      log.append(sizes: [5], at: time)
      _ = try #require(log.next(&cursor, bytes: .max).slice)
      #expect(cursor.pendingTimeMark == (time == 20 ? 20 : nil))
    }
  }

  @Test func aCopyOfTheCursorIsAStepBack() throws {
    let log = TopicLog(retention: .everything, pool: SegmentPool())
    log.append(sizes: [1, 2, 3], at: 10)
    var cursor = log.cursor(at: .offset(1)).cursor
    let before = cursor
    _ = log.next(&cursor, bytes: .max)
    cursor.pendingTimeMark = nil
    var again = TestReader(cursor: before)
    #expect(try again.readAll(log).map(\.1.body.count) == [2, 3])
  }
}

extension NextResult {
  var slice: LogSlice? {
    if case .slice(let slice) = self { slice } else { nil }
  }

  var isCaughtUp: Bool {
    if case .caughtUp = self { true } else { false }
  }

  var missed: UInt64? {
    if case .lagged(let missed) = self { missed } else { nil }
  }
}
