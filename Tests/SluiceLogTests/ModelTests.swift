import SluiceWire
import Testing

@testable import SluiceLog

/// Random histories of one log, compared step by step with ``LogModel``. The argument is the seed: it says everything.
@Suite struct ModelTests {
  @Test(arguments: 0..<100 as Range<UInt64>)
  func everyHistoryLooksLikeTheModel(seed: UInt64) throws {
    var history = RandomHistory(seed: seed)
    for _ in 0..<300 { try history.step() }
    try history.finish()
  }
}

private struct RandomHistory {
  var random: SplitMix
  let log: TopicLog
  let pool: SegmentPool
  var model: LogModel
  var clock: Int64
  var readers: [TestReader] = []
  /// How many records trims have dropped.
  var trimmed: UInt64 = 0

  /// The least grace that was promised so far.
  var grace: Int

  init(seed: UInt64) {
    random = SplitMix(state: seed)
    let retention = Retention(
      records: random.one(in: 2) ? nil : random.pick([0, 1, 10, 100, 1000]),
      bytes: random.one(in: 2) ? nil : random.pick([0, 1, 100, 1000, 10_000, 100_000]),
      ageMilliseconds: random.one(in: 2) ? nil : random.pick([-5, 0, 1, 10, 100]))
    let segmentBytes = random.pick([0, 64, 256, 4096, 20_000, 1 << 17])
    grace = random.pick([0, 50, 5000, 100_000])
    let firstOffset: UInt64 = random.pick([0, 1, 1000, 1 << 40])
    pool = SegmentPool(blockBytes: segmentBytes, maximumPooledBytes: 3 * segmentBytes)
    log = TopicLog(
      retention: retention, segmentBytes: segmentBytes, graceBytes: grace, pool: pool,
      firstOffset: firstOffset)
    model = LogModel(retention: retention, firstOffset: firstOffset)
    clock = random.pick([-3, 0, 1_700_000_000_000])
  }

  mutating func step() throws {
    clock += random.pick([0, 0, 0, 1, 2, 20, -3])
    if random.one(in: 40) { clock += random.pick([-100_000, -1_500, -900, 900, 5_000, 100_000]) }
    switch random.below(20) {
    case 0..<6: append()
    case 6: trim()
    case 7: try open()
    case 8: checkDescription()
    case 9 where random.one(in: 20): removeAll()
    case 9 where random.one(in: 5): cut()
    case 9 where random.one(in: 4): retain()
    default: try read()
    }
    log._checkInvariants()
  }

  /// All expected records are delivered, and all memory is returned.
  mutating func finish() throws {
    for var reader in readers where reader.cursor.nextOffset <= model.head {
      while try readOnce(&reader, records: .max, bytes: .max) {}
      #expect(reader.cursor.nextOffset == model.head)
    }
    readers = []
    removeAll()
    log._checkInvariants()
    #expect(pool.bytesInUse == 0)
    #expect(pool.bytesPooled <= pool.maximumPooledBytes)
  }

  mutating func append() {
    let count = random.pick([1, 1, 2, 10, 60])
    let batch = (0..<count).map { _ in
      let size = random.pick([0, 1, 5, 30, 30, random.below(300), random.one(in: 40) ? 30_000 : 8])
      return TestRecord(
        body: [UInt8](repeating: UInt8(truncatingIfNeeded: random.next()), count: size),
        isAttributed: random.one(in: 5))
    }
    #expect(log.append(batch, at: clock) == model.head)
    model.append(batch, at: clock)
    #expect(log.head == model.head)
  }

  mutating func trim() {
    let own = random.pick([nil, nil, 0, 1000] as [Int?])
    log.trim(now: clock, graceBytes: own)
    model.tell(clock)
    model.look(now: nil)
    if let own { grace = min(grace, own) }
  }

  /// Trims as an operator does; some of it may be kept for a reader.
  mutating func cut() {
    let near = model.head - min(UInt64(random.pick([0, 1, 7, 50, random.below(400)])), model.head)
    let offset = random.one(in: 9) ? UInt64.max : near
    let before = model.firstKept(now: nil)
    let keep: UInt64? = random.one(in: 3) ? near - min(near, UInt64(random.below(100))) : nil
    let oldest = log.oldestOffset
    let count = log.trim(to: offset, keepingFrom: keep)
    model.trim(to: offset)
    #expect(count == model.firstKept(now: nil) - before)
    trimmed += count
    if let keep { #expect(log.oldestOffset <= max(keep, oldest)) }
    // Trimmed records have left memory, unless a reader needs them.
    #expect(log.oldestOffset >= min(model.trimmedTo, keep ?? .max))
    // Readers under way may have lost what they could count on.
    grace = 0
  }

  /// Changes the limits, up or down: records that the former limits have dropped by now don't return.
  mutating func retain() {
    model.look(now: clock)
    switch random.below(3) {
    case 0: model.retention.records = random.pick([nil, 0, 10, 1000])
    case 1: model.retention.bytes = random.pick([nil, 0, 1000, 100_000])
    default: model.retention.ageMilliseconds = random.pick([nil, 0, 10, 1000])
    }
    log.retain(model.retention, now: clock)
  }

  mutating func removeAll() {
    log.removeAll()
    model.removedThrough = model.head
    #expect(log.statistics().memoryBytes == 0)
  }

  mutating func checkDescription() {
    model.look(now: nil)
    #expect(log.floor() == model.floor)
    let statistics = log.statistics(now: clock)
    let firstNow = model.firstKept(now: clock)
    #expect(statistics.firstOffset == firstNow)
    #expect(statistics.head == model.head)
    #expect(statistics.records == model.head - firstNow)
    #expect(statistics.bytes == model.bytes(from: firstNow))
    // Each record that is gone was dropped by one cause, but for those that were removed all at once.
    if model.removedThrough == model.firstOffset {
      let dropped = statistics.dropped
      #expect(dropped.total.records == firstNow - model.firstOffset)
      #expect(dropped.total.bytes == model.bytes(from: model.firstOffset) - model.bytes(from: firstNow))
      #expect(dropped[.trim].records == trimmed)
    }
    #expect(statistics.memoryBytes >= statistics.bytes)
  }

  mutating func open() throws {
    let position = anyStart()
    let now = random.pick([nil, clock, clock + 5])
    if random.one(in: 4) {
      // A subscriber that returns gets at least what a late subscriber would, and nothing that was trimmed.
      let (cursor, missed) = log.cursor(at: position, from: log.lowestForReturning, now: now)
      #expect(cursor.nextOffset >= model.trimmedTo)
      #expect(cursor.nextOffset <= model.start(position, now: now))
      if case .offset(let offset) = position { #expect(cursor.nextOffset == offset + missed) }
      readers.append(TestReader(cursor: cursor))
    } else {
      let (cursor, missed) = log.cursor(at: position, now: now)
      #expect(cursor.nextOffset == model.start(position, now: now), "\(position)")
      if position != .new { model.look(now: now) }
      if case .offset(let offset) = position {
        #expect(missed == cursor.nextOffset - offset)
      } else {
        #expect(missed == 0)
      }
      readers.append(TestReader(cursor: cursor))
    }
    if readers.count > 6 { readers.remove(at: random.below(readers.count)) }
  }

  mutating func anyStart() -> StartPosition {
    let near = UInt64(max(0, Int64(model.head) + Int64(random.below(400)) - 390))
    switch random.below(8) {
    case 0: return .replay
    case 1: return .earliest
    case 2: return .new
    case 3: return .last(random.pick([0, 1, 7, 50, 5000, .max]))
    case 4: return .offset(random.pick([0, .max]))
    case 5: return .time(random.pick([.min, .max, 0]))
    case 6: return .time(clock - Int64(random.below(60)))
    default: return .offset(near)
    }
  }

  mutating func read() throws {
    guard !readers.isEmpty else { return try open() }
    let chosen = random.below(readers.count)
    let records: UInt64 = random.pick([0, 1, 1, 2, 40, 200, .max, .max])
    let bytes = random.pick([-1, 0, 1, 100, 1000, 6000, 50_000, .max])
    var reader = readers[chosen]
    // A step back repeats what was read.
    if random.one(in: 5) {
      var rehearsal = reader
      _ = try readOnce(&rehearsal, records: records, bytes: .max)
    }
    if random.one(in: 3) { reader.hint = random.pick(readers).hint }
    if random.one(in: 10) { reader.hint = nil }
    _ = try readOnce(&reader, records: records, bytes: bytes)
    readers[chosen] = reader
  }

  /// Returns false when there was nothing.
  func readOnce(_ reader: inout TestReader, records: UInt64, bytes: Int) throws -> Bool {
    let before = reader.cursor.nextOffset
    switch log.next(&reader.cursor, records: records, bytes: bytes, hint: reader.hint) {
    case .caughtUp:
      #expect(before >= model.head || records == 0)
      #expect(reader.cursor.nextOffset == before)
      return false
    case .lagged(let missed):
      let next = reader.cursor.nextOffset
      #expect(next == before + missed && missed > 0)
      // Nothing that is kept is missed, nor anything within the grace.
      #expect(next <= max(model.firstKept(now: nil), model.trimmedTo))
      #expect(next == model.removedThrough || model.bytes(from: next) >= grace)
      return true
    case .slice(let slice):
      #expect(slice.firstOffset == before)
      #expect(UInt64(slice.count) <= records)
      #expect(slice.bytes.count <= bytes || slice.count == 1)
      let read = try reader.decode(slice)
      #expect(reader.cursor.nextOffset == before + UInt64(slice.count))
      #expect(read.map(\.0) == Array(before..<reader.cursor.nextOffset))
      #expect(read.map(\.1) == (before..<reader.cursor.nextOffset).map { model[$0] })
      return true
    }
  }
}
