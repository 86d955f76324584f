import SluiceLog
import SluiceWire
import Testing

@Suite struct RetentionTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var retention: Retention
    var kept: [UInt64]

    var testDescription: String { "\(retention)" }
  }

  /// Records 0 to 5, with 10, 20, 30, 40, 50, 60 bytes as items, appended at as many milliseconds; now it is 60.
  @Test(arguments: [
    Case(retention: .everything, kept: [0, 1, 2, 3, 4, 5]),
    Case(retention: .none, kept: []),
    Case(retention: Retention(records: 1), kept: [5]),
    Case(retention: Retention(records: 4), kept: [2, 3, 4, 5]),
    Case(retention: Retention(records: 6), kept: [0, 1, 2, 3, 4, 5]),
    Case(retention: Retention(records: .max), kept: [0, 1, 2, 3, 4, 5]),
    Case(retention: Retention(bytes: 0), kept: []),
    Case(retention: Retention(bytes: 59), kept: []),
    Case(retention: Retention(bytes: 60), kept: [5]),
    Case(retention: Retention(bytes: 109), kept: [5]),
    Case(retention: Retention(bytes: 110), kept: [4, 5]),
    Case(retention: Retention(bytes: 209), kept: [1, 2, 3, 4, 5]),
    Case(retention: Retention(bytes: 210), kept: [0, 1, 2, 3, 4, 5]),
    Case(retention: Retention(bytes: .max), kept: [0, 1, 2, 3, 4, 5]),
    Case(retention: Retention(ageMilliseconds: .min), kept: [5]),
    Case(retention: Retention(ageMilliseconds: 0), kept: [5]),
    Case(retention: Retention(ageMilliseconds: 9), kept: [5]),
    Case(retention: Retention(ageMilliseconds: 10), kept: [4, 5]),
    Case(retention: Retention(ageMilliseconds: 50), kept: [0, 1, 2, 3, 4, 5]),
    Case(retention: Retention(ageMilliseconds: .max), kept: [0, 1, 2, 3, 4, 5]),
    Case(retention: Retention(records: 3, bytes: 149, ageMilliseconds: 40), kept: [4, 5]),
    Case(retention: Retention(records: 2, bytes: 210, ageMilliseconds: 40), kept: [4, 5]),
    Case(retention: Retention(records: 5, bytes: 210, ageMilliseconds: 15), kept: [4, 5]),
  ])
  func lateSubscribersGetExactlyWhatAllLimitsKeep(_ example: Case) throws {
    // In one segment, and in many.
    for segmentBytes in [64, 1 << 16] {
      let log = TopicLog(retention: example.retention, segmentBytes: segmentBytes, pool: SegmentPool())
      for size in 1...6 { log.append(sizes: [size * 10 - RecordLayout.wordSize], at: Int64(size * 10)) }
      #expect(try log.offsets(from: .replay) == example.kept)
      #expect(log.floor() == example.kept.first ?? 6)
      let statistics = log.statistics()
      #expect(statistics.records == UInt64(example.kept.count))
      #expect(statistics.bytes == example.kept.reduce(0) { $0 + Int($1 + 1) * 10 })
    }
  }

  @Test func whatIsTrimmedIsCountedOnceAndApartFromWhatLimitsDrop() {
    for segmentBytes in [64, 1 << 16] {
      let log = TopicLog(retention: Retention(records: 8), segmentBytes: segmentBytes, pool: SegmentPool())
      log.append(sizes: [Int](repeating: 16, count: 10), at: 0)
      // The limit has dropped two, the trim four.
      #expect(log.trim(to: 6) == 4)
      let trimmed = log.statistics().dropped
      #expect(trimmed[.records] == .init(records: 2, bytes: 40))
      #expect(trimmed[.trim] == .init(records: 4, bytes: 80))
      #expect(log.trim(to: 3) == 0 && log.statistics().dropped == trimmed)
      // The limit drops two more, 6 and 7, whether or not the segment of the others has gone before.
      log.append(sizes: [Int](repeating: 16, count: 6), at: 0)
      log.trim(now: 0, graceBytes: 0)
      #expect(log.statistics().dropped[.records] == .init(records: 4, bytes: 80))
      #expect(log.statistics().dropped[.trim] == .init(records: 4, bytes: 80))
      #expect(log.trim(to: .max) == 8 && log.statistics().dropped[.trim].records == 12)
    }
  }

  @Test func whatATrimHasLeftForAReaderGoesWithoutTheReader() throws {
    let log = TopicLog(retention: .everything, segmentBytes: 64, pool: SegmentPool())
    for _ in 0..<10 { log.append(sizes: [40], at: 0) }
    #expect(log.trim(to: 8, keepingFrom: 2) == 8)
    #expect(log.oldestOffset == 2 && log.floor() == 8)
    log.trim(now: 0, keepingFrom: 5)
    #expect(log.oldestOffset == 5)
    // An append lets them go as well.
    log.append(sizes: [40], at: 0)
    #expect(log.oldestOffset == 8 && log.statistics().dropped[.trim].records == 8)
  }

  @Test func ageIsMeasuredAtTheLatestTimeTold() throws {
    let log = TopicLog(retention: Retention(ageMilliseconds: 10), pool: SegmentPool())
    for time in [0, 5, 10] as [Int64] { log.append(sizes: [1], at: time) }
    #expect(try log.offsets(from: .earliest) == [0, 1, 2])
    #expect(try log.offsets(from: .earliest, now: 12) == [1, 2])
    #expect(try log.offsets(from: .earliest, now: 11) == [1, 2])
    log.trim(now: 16)
    #expect(try log.offsets(from: .earliest) == [2])
    #expect(log.cursor(at: .offset(0)).missed == 2)
    #expect(try log.offsets(from: .earliest, now: .max).isEmpty)
  }

  @Test func anAgeLimitBeforeAnyTimeIsNoTrap() throws {
    let log = TopicLog(retention: Retention(ageMilliseconds: .max), pool: SegmentPool())
    #expect(log.floor() == 0)
    log.append(sizes: [1], at: .min)
    log.trim(now: .min)
    #expect(try log.offsets(from: .earliest) == [0])
    log.append(sizes: [1], at: .max)
    #expect(try log.offsets(from: .earliest) == [1])
  }

  @Test func aReaderUnderWayGetsWhatNoLateSubscriberWould() throws {
    let log = TopicLog(retention: .none, pool: SegmentPool())
    var reader = TestReader(cursor: log.cursor(at: .new).cursor)
    log.append(sizes: [Int](repeating: 100, count: 1000), at: 0)
    #expect(try log.offsets(from: .earliest).isEmpty)
    #expect(try reader.readAll(log).map(\.0) == Array(0..<1000))
  }

  @Test func aBatchIsNotDroppedBeforeItCanBeRead() throws {
    let log = TopicLog(retention: .none, segmentBytes: 256, graceBytes: 0, pool: SegmentPool())
    var reader = TestReader(cursor: log.cursor(at: .new).cursor)
    for round in 0..<10 as Range<UInt64> {
      log.append(sizes: [Int](repeating: 50, count: 40), at: 0)
      #expect(try reader.readAll(log).map(\.0) == Array(round * 40..<(round + 1) * 40))
    }
  }

  @Test func aReaderBehindTheGraceIsToldHowMuchItMissed() throws {
    let log = TopicLog(
      retention: Retention(records: 10), segmentBytes: 1024, graceBytes: 4096, pool: SegmentPool())
    var reader = TestReader(cursor: log.cursor(at: .new).cursor)
    for _ in 0..<1000 { log.append(sizes: [60], at: 0) }
    let missed = try #require(log.next(&reader.cursor, records: 0, bytes: .max).missed)
    #expect(reader.cursor.nextOffset == missed)
    let rest = try reader.readAll(log)
    #expect(rest.map(\.0) == Array(missed..<1000))
    // At least the grace, at most a segment more.
    let bytes = rest.count * 64
    #expect(bytes >= 4096 && bytes < 4096 + 2 * 1024)
  }

  @Test func offsetsGoOnAfterEverythingWasRemoved() throws {
    let log = TopicLog(retention: .everything, pool: SegmentPool())
    var behind = log.cursor(at: .new).cursor
    log.append(sizes: [1, 2, 3], at: 7)
    var atHead = TestReader(cursor: log.cursor(at: .new).cursor)
    log.removeAll()
    #expect(log.floor() == 3)
    #expect(log.next(&behind, bytes: .max).missed == 3)
    #expect(log.next(&atHead.cursor, bytes: .max).isCaughtUp)
    #expect(log.append(sizes: [4], at: 7) == 3)
    let read = try atHead.readAll(log)
    #expect(read.map(\.0) == [3])
    #expect(read.map(\.1.time) == [7])
    #expect(try #require(log.next(&behind, bytes: .max).slice).firstOffset == 3)
  }
}
