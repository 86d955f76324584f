import SluiceLog
import Testing

/// Ten records with offsets 100 to 109, two at each of the times 0, 10, 20, 30, 40; the newest six are kept.
@Suite struct StartPositionTests {
  let log: TopicLog

  init() {
    log = TopicLog(retention: Retention(records: 6), pool: SegmentPool(), firstOffset: 100)
    for time in 0..<5 as Range<Int64> { log.append(sizes: [1, 1], at: time * 10) }
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var position: StartPosition
    var start: UInt64
    var missed: UInt64 = 0

    var testDescription: String { "\(position)" }
  }

  @Test(arguments: [
    Case(position: .replay, start: 104),
    Case(position: .earliest, start: 104),
    Case(position: .new, start: 110),
    Case(position: .last(0), start: 110),
    Case(position: .last(1), start: 109),
    Case(position: .last(6), start: 104),
    Case(position: .last(7), start: 104),
    Case(position: .last(.max), start: 104),
    Case(position: .offset(0), start: 104, missed: 104),
    Case(position: .offset(103), start: 104, missed: 1),
    Case(position: .offset(104), start: 104),
    Case(position: .offset(107), start: 107),
    Case(position: .offset(110), start: 110),
    Case(position: .offset(111), start: 111),
    Case(position: .offset(.max), start: .max),
    Case(position: .time(.min), start: 104),
    Case(position: .time(5), start: 104),
    Case(position: .time(20), start: 104),
    Case(position: .time(21), start: 106),
    Case(position: .time(30), start: 106),
    Case(position: .time(40), start: 108),
    Case(position: .time(41), start: 110),
    Case(position: .time(.max), start: 110),
  ])
  func beginsWhereItsRuleSays(_ example: Case) throws {
    let (cursor, missed) = log.cursor(at: example.position)
    #expect(cursor.nextOffset == example.start)
    #expect(missed == example.missed)
    var reader = TestReader(cursor: cursor)
    #expect(try reader.readAll(log).map(\.0) == Array(min(example.start, 110)..<110))
  }

  @Test(arguments: [.replay, .earliest, .new, .last(3), .offset(50), .time(9)] as [StartPosition])
  func anEmptyLogBeginsAtItsHead(_ position: StartPosition) throws {
    let log = TopicLog(retention: .everything, pool: SegmentPool(), firstOffset: 50)
    var reader = TestReader(cursor: log.cursor(at: position).cursor)
    #expect(reader.cursor.nextOffset == 50)
    #expect(try reader.readAll(log).isEmpty)
    log.append(sizes: [1, 2], at: 0)
    #expect(try reader.readAll(log).map(\.0) == [50, 51])
  }

  @Test func anOffsetBeyondTheHeadIsWaitedFor() throws {
    var reader = TestReader(cursor: log.cursor(at: .offset(113)).cursor)
    log.append(sizes: [1, 1], at: 50)
    #expect(log.next(&reader.cursor, bytes: .max).isCaughtUp)
    log.append(sizes: [1, 1, 1], at: 60)
    let read = try reader.readAll(log)
    #expect(read.map(\.0) == [113, 114])
    #expect(read.map(\.1.time) == [60, 60])
  }

  @Test func aReturningReaderMayBeginAtWhateverLimitsHaveLeftInMemory() throws {
    let (cursor, missed) = log.cursor(at: .offset(101), from: log.lowestForReturning)
    #expect(cursor.nextOffset == 101)
    #expect(missed == 0)
    var reader = TestReader(cursor: cursor)
    #expect(try reader.readAll(log).map(\.0) == Array(101..<110))
    #expect(log.cursor(at: .offset(90), from: log.lowestForReturning).missed == 10)
    // It doesn't get trimmed records, either, even if another reader needs them.
    log.trim(to: 106, keepingFrom: 103)
    #expect(log.oldestOffset == 103)
    #expect(log.cursor(at: .offset(101), from: log.lowestForReturning).missed == 5)
  }
}
