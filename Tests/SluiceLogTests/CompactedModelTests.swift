import SluiceWire
import Synchronization
import Testing

@testable import SluiceLog

/// Random histories of one store of newest records, compared step by step with a simple model. The argument is the seed, which determines everything.
@Suite struct CompactedModelTests {
  @Test(arguments: 0..<50 as Range<UInt64>)
  func everyHistoryLooksLikeTheModel(seed: UInt64) {
    var history = CompactedHistory(seed: seed)
    for step in 1...200 {
      history.step()
      if step % 10 == 0 { history.check() }
    }
  }
}

/// The newest record of each key, in the simplest form.
private struct CompactedModel {
  struct Record: Equatable {
    var offset: UInt64
    var time: Int64
    var item: [UInt8]
    var isDeletion: Bool
  }

  var retention: Retention
  var newest: [[UInt8]: Record] = [:]
  let origin: UInt64
  var head: UInt64
  var firstKept: UInt64
  var clock = ModelClock()
  var trimmedTo: UInt64 = 0

  /// By offset, whether the limits retain them or not.
  var records: [Record] { newest.values.filter { !$0.isDeletion }.sorted { $0.offset < $1.offset } }
  var deletions: [Record] { newest.values.filter(\.isDeletion).sorted { $0.offset < $1.offset } }
  var kept: [Record] { records.filter { $0.offset >= firstKept } }

  mutating func append(_ batch: [(key: [UInt8], item: [UInt8], isDeletion: Bool)], at milliseconds: Int64) {
    let time = clock.append(at: milliseconds, count: batch.count)
    for (key, item, isDeletion) in batch {
      newest[key] = Record(offset: head, time: time, item: item, isDeletion: isDeletion)
      head += 1
    }
    limit()
  }

  mutating func limit() {
    var left = kept
    while let first = left.first {
      let isKept =
        left.count <= retention.records ?? .max
        && left.reduce(0) { $0 + $1.item.count } <= retention.bytes ?? .max
        && clock.now - min(first.time, clock.caps[Int(first.offset - origin)])
          <= max(retention.ageMilliseconds ?? .max, 0)
      if isKept { break }
      firstKept = first.offset + 1
      left.removeFirst()
    }
  }

  /// Drops all earlier records, deletions included, unless a trim to a number of records needs to drop none.
  mutating func trim(to limit: TrimLimit) {
    self.limit()
    switch limit {
    case .from(let offset): trimmedTo = max(trimmedTo, min(offset, head))
    case .newest(let count):
      if count > 0, UInt64(kept.count) <= count { return }
      trimmedTo = max(trimmedTo, count == 0 ? head : kept[kept.count - Int(count)].offset)
    }
    firstKept = max(firstKept, trimmedTo)
    newest = newest.filter { !$0.value.isDeletion || $0.value.offset >= trimmedTo }
  }

  /// The expected answer for a position.
  func start(_ position: StartPosition, before end: UInt64) -> UInt64 {
    let offset: UInt64 =
      switch position {
      case .replay, .earliest: kept.first?.offset ?? head
      case .new: end
      case .last(let count): count == 0 ? end : kept.suffix(Int(clamping: count)).first?.offset ?? head
      case .offset(let offset): max(offset, firstKept)
      case .time(let time): kept.first { $0.time >= time }?.offset ?? head
      }
    if case .offset(let asked) = position, asked >= end { return asked }
    return min(offset, end)
  }
}

private struct CompactedHistory {
  var random: SplitMix
  let store: CompactedRecords
  var model: CompactedModel
  var clock: Int64
  let keys: Int
  let grace: Int
  let longest: Int

  init(seed: UInt64) {
    random = SplitMix(state: seed)
    let retention = Retention(
      records: random.one(in: 2) ? nil : random.pick([0, 1, 10, 100]),
      bytes: random.one(in: 2) ? nil : random.pick([0, 1, 100, 1000, 100_000]),
      ageMilliseconds: random.one(in: 2) ? nil : random.pick([-5, 0, 1, 10, 100]))
    grace = random.pick([0, 50, 5000, 1 << 20])
    keys = random.pick([1, 3, 30, 300, 3000])
    longest = random.pick([10, 100, 3000])
    let firstOffset: UInt64 = random.pick([0, 1, 1 << 40])
    store = CompactedRecords(
      retention: retention, graceBytes: grace, chunkBytes: random.pick([1024, 4096, 64 << 10]),
      firstOffset: firstOffset)
    model = CompactedModel(
      retention: retention, origin: firstOffset, head: firstOffset, firstKept: firstOffset)
    clock = random.pick([-3, 0, 1_700_000_000_000])
  }

  mutating func step() {
    clock += random.pick([0, 0, 0, 1, 2, 20, -3])
    if random.one(in: 40) { clock += random.pick([-100_000, -1_500, -900, 900, 5_000, 100_000]) }
    switch random.below(20) {
    case 0..<12: append()
    case 12: trim()
    case 13 where random.one(in: 5): cut()
    case 13 where random.one(in: 5): retain()
    case 13..<16: start()
    default: walk()
    }
  }

  mutating func append() {
    var batch = BatchBuilder()
    var records: [(key: [UInt8], item: [UInt8], isDeletion: Bool)] = []
    for _ in 0..<random.pick([1, 1, 2, 10, 60]) {
      // Some keys come much more often than others, and some are long.
      let number = random.one(in: 2) ? random.below(keys) : random.below(min(keys, 3))
      let key =
        [UInt8](repeating: UInt8(number & 0xff), count: number % 7 == 6 ? 60_000 : number % 5)
        + "\(number)".utf8
      let size = random.one(in: 6) ? 0 : random.pick([1, 8, random.below(longest)])
      let payload = [UInt8](repeating: UInt8(truncatingIfNeeded: random.next()), count: size)
      let before = batch.bytes.count
      key.withUnsafeBytes { key in
        payload.withUnsafeBytes {
          try? batch.append(key: key, headers: random.one(in: 9) ? [([1], [2])] : [], payload: $0)
        }
      }
      records.append((key, Array(batch.bytes[before...]), size == 0))
    }
    batch.bytes.withUnsafeBytes { store.append($0, at: clock) }
    model.append(records, at: clock)
  }

  mutating func trim() {
    store.trim(now: clock, graceBytes: random.pick([nil, nil, 0]))
    model.clock.tell(clock)
    model.limit()
  }

  /// Trims as an operator does; some records may be kept for a reader.
  mutating func cut() {
    let before = model.head - min(UInt64(random.below(100)), model.head)
    let limit: TrimLimit = random.one(in: 2) ? .from(before) : .newest(UInt64(random.below(50)))
    model.limit()
    let count = model.kept.count
    let dropped = store.statistics().dropped
    model.trim(to: limit)
    #expect(store.trim(to: limit) == count - model.kept.count)
    let trimmed = store.statistics().dropped[.trim].records - dropped[.trim].records
    #expect(trimmed == UInt64(count - model.kept.count))
  }

  mutating func retain() {
    model.clock.tell(clock)
    model.limit()
    model.retention.records = random.pick([nil, 0, 10, 100] as [UInt64?])
    store.retain(model.retention, now: clock)
    trim()
  }

  mutating func start() {
    let near = model.head - min(UInt64(random.below(200)), model.head)
    let end = random.one(in: 3) ? near : model.head
    let position: StartPosition =
      switch random.below(7) {
      case 0: .replay
      case 1: .earliest
      case 2: .new
      case 3: .last(random.pick([0, 1, 7, 50, 5000, .max]))
      case 4: .time(random.pick([.min, .max, clock - Int64(random.below(60))]))
      case 5: .offset(random.pick([0, .max]))
      default: .offset(near)
      }
    #expect(store.floor() == model.firstKept)
    let lowest = store.lowestForReturning
    #expect(lowest >= model.trimmedTo && lowest <= model.firstKept)
    let (offset, missed) = store.start(at: position, before: end)
    #expect(offset == model.start(position, before: end), "\(position)")
    if case .offset(let asked) = position {
      #expect(missed == offset - asked)
    } else {
      #expect(missed == 0)
    }
  }

  mutating func walk() {
    let from = model.head - min(UInt64(random.below(400)), model.head)
    let end = random.one(in: 3) ? from + 1 + UInt64(random.below(100)) : model.head + 1
    let deletionsFrom = random.pick([0, from + 20, UInt64.max])
    var left = random.pick([1, 5, Int.max])
    var shown: [CompactedModel.Record] = []
    let walk = store.walk(from: from, before: end, deletionsFrom: deletionsFrom) { record in
      guard left > 0 else { return false }
      left -= 1
      shown.append(
        CompactedModel.Record(
          offset: record.offset, time: record.time, item: Array(record.item),
          isDeletion: RecordLayout.isDeletion(record.item.baseAddress!)))
      return true
    }
    var expected = model.records.filter { $0.offset >= from && $0.offset < end }
    expected += model.deletions.filter { $0.offset >= max(from, deletionsFrom) && $0.offset < end }
    expected.sort { $0.offset < $1.offset }
    switch walk {
    case .finished: #expect(shown == expected)
    case .stopped(let offset):
      #expect(shown.count < expected.count && shown == Array(expected.prefix(shown.count)))
      #expect(offset == expected[shown.count].offset)
    case .recordsMissed(let before):
      #expect(shown.isEmpty && before > from && before <= end)
      #expect(before <= model.firstKept, "what is kept is shown")
    case .deletionsMissed(let before):
      #expect(shown.isEmpty && before > max(from, deletionsFrom) && before <= end)
      #expect(grace < 1 << 20 || before <= model.trimmedTo, "there are too few to drop any")
    }
  }

  func check() {
    store._checkInvariants()
    let statistics = store.statistics()
    #expect(statistics.records == UInt64(model.kept.count))
    #expect(statistics.bytes == model.kept.reduce(0) { $0 + $1.item.count })
    #expect(statistics.firstOffset == model.kept.first?.offset ?? model.head)
    #expect(statistics.head == model.head)
    #expect(statistics.lapsedBytes <= grace)
    let droppedBefore = store.state.withLock { $0.recordsLostBefore }
    for offset in [0, model.firstKept / 2, droppedBefore + 1, model.firstKept, model.head] {
      let first = max(offset, droppedBefore)
      let lapsed = model.records.filter { $0.offset >= first && $0.offset < model.firstKept }
      #expect(store.lapsedBytes(from: offset) == lapsed.reduce(0) { $0 + $1.item.count })
    }
    // The true size, allowing for the records that the store reports as droppable.
    let deletions = min(model.deletions.reduce(0) { $0 + $1.item.count + 32 }, max(grace, statistics.bytes))
    let records =
      statistics.bytes + statistics.lapsedBytes + (Int(statistics.records) + statistics.lapsedBytes / 8) * 32
    let slots = 16 + 8 * (Int(statistics.records) + statistics.lapsedBytes / 8 + statistics.deletions)
    #expect(
      statistics.memoryBytes <= 2 * (deletions + records) + slots * 12 + 2 * max(66_000, 60_100 + longest)
        + 8000)
  }
}
