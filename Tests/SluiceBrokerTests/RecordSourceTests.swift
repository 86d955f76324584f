import SluiceIO
import SluiceLog
import SluiceSimulation
import SluiceStore
import SluiceWire
import Synchronization
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Random histories of one epoch with several readers, compared step by step with an array of all records. The argument is the seed, which determines
/// everything.
struct RecordSourceTests {
  @Test(arguments: 0..<60 as Range<UInt64>)
  func recordsInMemoryAreReadOrMissedInOrder(seed: UInt64) throws {
    try run(SourceHistory(.memory, seed: seed))
  }

  @Test(arguments: 0..<60 as Range<UInt64>)
  func theNewestOfEachKeyIsReadBeforeTheLog(seed: UInt64) throws {
    try run(SourceHistory(.compact, seed: seed))
  }

  @Test(arguments: 0..<60 as Range<UInt64>)
  func whatLeftMemoryIsReadFromStorage(seed: UInt64) throws {
    try run(SourceHistory(.durable, seed: seed))
  }

  @Test("Every step advances when each record is longer than the portion", arguments: 0..<20 as Range<UInt64>)
  func stepsAdvancePastLongRecords(seed: UInt64) throws {
    for kind in SourceHistory.Kind.allCases {
      let history = SourceHistory(kind, seed: seed)
      history.portion = 1
      try run(history)
    }
  }

  private func run(_ history: SourceHistory) throws {
    for _ in 0..<300 { try history.step() }
    try history.finish()
  }

  @Test func aSegmentThatLogAndStorageBeginAtTheSameOffsetIsntConfused() throws {
    let history = SourceHistory(.durable, seed: 1, segmentBytes: 8192)
    // In the log a batch has a mark only if the time changes; in storage each batch has one.
    for _ in 0..<3 { try history.append(["a0", "a1"], at: 5) }
    var source = RecordSource(history.epoch, at: LogCursor(unplacedAt: 0))
    let hint = SegmentHint()
    guard case .run(let slice, _) = source.next(demand: 3, bytes: .max, hint: hint) else {
      Issue.record("nothing is in memory")
      return
    }
    #expect(slice.firstOffset == 0 && slice.count == 3)
    history.epoch.log.removeAll()
    guard case .loading(let request?) = source.next(demand: 9, bytes: .max, hint: hint) else {
      Issue.record("nothing is asked of storage")
      return
    }
    source.take(try history.load(request), for: request)
    guard case .run(let rest, let mark) = source.next(demand: 9, bytes: .max, hint: hint) else {
      Issue.record("nothing is in storage")
      return
    }
    var time = mark
    #expect(rest.firstOffset == 3)
    #expect(try history.decode(rest.bytes, &time) == Array(history.records[3...]))
  }

  @Test func aRequestThatFailsIsOpenUntilItIsAbandoned() throws {
    let history = SourceHistory(.durable, seed: 1)
    try history.append(["a0"], at: 5)
    history.epoch.log.removeAll()
    var source = RecordSource(history.epoch, at: LogCursor(unplacedAt: 0))
    let hint = SegmentHint()
    guard case .loading(let request?) = source.next(demand: 1, bytes: .max, hint: hint) else {
      Issue.record("nothing is asked of storage")
      return
    }
    source.take(StoredRecords(segment: nil, next: 0, isFailure: true), for: request)
    #expect(source.awaits(request))
    guard case .loading(nil) = source.next(demand: 1, bytes: .max, hint: hint) else {
      Issue.record("it is asked for twice")
      return
    }
    source.abandon(request)
    guard case .loading(_?) = source.next(demand: 1, bytes: .max, hint: hint) else {
      Issue.record("it isn't asked for again")
      return
    }
  }
}

private final class LoadResult: Sendable {
  let records = Mutex<StoredRecords?>(nil)
}

/// An epoch with random events, and its expected records.
private final class SourceHistory {
  enum Kind: CaseIterable { case memory, compact, durable }

  struct Record: Equatable {
    var key: String?
    var body: [UInt8]
    var isAttributed: Bool
    var isDeletion: Bool
    var time: Int64

    var isWanted: Bool { key?.hasPrefix("a") ?? false }

    static func == (left: Record, right: Record) -> Bool {
      left.body == right.body && left.isAttributed == right.isAttributed && left.time == right.time
    }
  }

  private struct Reader {
    var source: RecordSource
    /// The time of the last mark that the reader got.
    var time: Int64?
    var deletionsFrom: UInt64
    /// Loaded records that weren't delivered yet.
    var loaded: [(request: StoreRequest, records: StoredRecords)] = []
  }

  private static let topic = "t"
  private static let id = TopicID(rawValue: 1)

  private let kind: Kind
  /// The portion of each step in bytes; nil for random ones.
  var portion: Int?
  private var random: TestSupport.SeededRandom
  private let world: SimulatedWorld
  private let loop: SimulatedLoop
  private let store = MemoryStore()
  private let service: StoreService
  private let storage: StoreTopicState
  private let pool = SegmentPool(blockBytes: 1 << 16, maximumPooledBytes: 0)
  let epoch: TopicEpoch
  private(set) var records: [Record] = []
  private var clock: Int64 = 0
  private var readers: [Reader] = []
  private let hint = SegmentHint()
  private let matcher = RecordMatcher(RecordFilter([.init(.key, .hasPrefix(Array("a".utf8)))]))

  /// - Parameter segmentBytes: nil for a random size.
  init(_ kind: Kind, seed: UInt64, segmentBytes: Int? = nil) {
    self.kind = kind
    random = TestSupport.SeededRandom(seed: seed)
    world = SimulatedWorld(seed: seed, loops: 0, conditions: .calm)
    loop = world.makeLoop()
    service = StoreService(
      LocalStore(store), pool: pool, limits: TopicLimits(), writer: world.makeLoop(),
      readers: [world.makeLoop()],
      metrics: BrokerMetrics(), report: { _ in })
    storage = StoreTopicState(
      id: Self.id, service: service, settings: TopicSettings(), extent: StoredExtent())
    let segment = segmentBytes ?? [64, 256, 2000].randomElement(using: &random)!
    let grace = [0, 300, 3000].randomElement(using: &random)!
    let limit: UInt64? = [nil, 0, 3, 20].randomElement(using: &random)!
    let log = TopicLog(
      retention: kind == .durable ? .everything : kind == .compact ? .none : Retention(records: limit),
      segmentBytes: segment, graceBytes: grace, pool: pool)
    epoch = TopicEpoch(
      number: 1, log: log,
      newest: kind == .compact
        ? CompactedRecords(
          retention: Retention(records: limit == 0 ? nil : limit), graceBytes: grace, pool: pool) : nil,
      storage: kind == .durable ? storage : nil)
  }

  private var head: UInt64 { UInt64(records.count) }

  func step() throws {
    clock += [0, 0, 1, 5].randomElement(using: &random)!
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<5:
      let keys = (0..<[1, 1, 3, 12].randomElement(using: &random)!).map { _ -> String? in
        if kind != .compact, Int.random(in: 0..<4, using: &random) == 0 { return nil }
        return ["a", "b"].randomElement(using: &random)! + "\(Int.random(in: 0..<5, using: &random))"
      }
      try append(keys, at: clock)
    case 5: try drop()
    case 6: open()
    case 7 where kind != .compact && !readers.isEmpty: move()
    case 8 where !readers.isEmpty:
      let chosen = readers.indices.randomElement(using: &random)!
      handOver(to: &readers[chosen])
    case 9 where !readers.isEmpty:
      readers[readers.indices.randomElement(using: &random)!].source.dropStored()
    default:
      guard let chosen = readers.indices.randomElement(using: &random) else { return open() }
      try read(chosen)
    }
  }

  /// Reads to the head with every reader, and checks that all memory is released.
  func finish() throws {
    for index in readers.indices {
      for round in 0... {
        if readers[index].source.nextOffset == head { break }
        // Each step advances, or reports a gap or a load; in the worst case filters pass records one by one.
        try #require(round < 4 * records.count + 16, "a reader doesn't come to the head")
        try read(index, demand: .max)
        handOver(to: &readers[index])
      }
    }
    readers = []
    hint.clear()
    epoch.log.removeAll()
    epoch.newest?.removeAll()
    #expect(service.loadedBytes.load(ordering: .relaxed) == 0)
    #expect(pool.bytesInUse == 0)
  }

  // MARK: What happens to the epoch

  /// Appends one record for each of these keys.
  func append(_ keys: [String?], at time: Int64) throws {
    var batch = BatchBuilder()
    for key in keys {
      let isDeletion = kind == .compact && Int.random(in: 0..<4, using: &random) == 0
      let size = isDeletion ? 0 : [1, 9, 60, 400].randomElement(using: &random)!
      let payload = [UInt8](repeating: UInt8(truncatingIfNeeded: records.count), count: size)
      let before = batch.bytes.count
      let keyBytes = key.map { Array($0.utf8) }
      try payload.withUnsafeBytes { payload in
        if let keyBytes {
          try keyBytes.withUnsafeBytes { try batch.append(key: $0, headers: [], payload: payload) }
        } else {
          batch.append(payload)
        }
      }
      records.append(
        Record(
          key: key, body: Array(batch.bytes[(before + RecordLayout.wordSize)...]), isAttributed: key != nil,
          isDeletion: isDeletion, time: time))
    }
    try batch.bytes.withUnsafeBytes { bytes in
      if kind == .durable {
        let extent = try store.extent(of: Self.id)
        let block = BatchBlock(firstOffset: epoch.log.head, bytesBefore: extent?.bytesThrough ?? 0)
        #expect(block.append(bytes, count: keys.count, time: time).records == keys.count)
        block.seal(for: Self.id)
        try commit { change in
          if extent == nil { change.row = StoredTopic(name: Self.topic, settings: TopicSettings(), epoch: 1) }
          change.batches = [block]
        }
      }
      epoch.newest?.append(bytes, at: time)
      _ = epoch.log.append(bytes, count: keys.count, at: time)
    }
  }

  private func commit(_ fill: (inout TopicChange) -> Void) throws {
    var change = TopicChange(Self.id)
    fill(&change)
    try store.commit([change])
    storage.moved(to: try #require(try store.extent(of: Self.id)), lapsed: 0)
  }

  private func drop() throws {
    guard kind == .durable, head > 0 else { return epoch.log.trim(now: clock, graceBytes: 0) }
    let offset = UInt64.random(in: 0...head, using: &random)
    epoch.log.drop(before: offset)
    if Int.random(in: 0..<3, using: &random) == 0 { try commit { $0.truncateBefore = offset } }
  }

  // MARK: Readers

  private func open() {
    guard readers.count < 5 else {
      readers.remove(at: readers.indices.randomElement(using: &random)!)
      return
    }
    let offset = UInt64.random(in: 0...head, using: &random)
    let isResuming = Bool.random(using: &random)
    let deletionsFrom = isResuming ? offset : head
    let source = RecordSource(
      epoch, at: LogCursor(unplacedAt: offset), matcher: Bool.random(using: &random) ? matcher : nil,
      compacted: epoch.newest.map {
        CompactedReader($0, before: head, deletionsFrom: deletionsFrom, headroom: WriteBatch.deliverHeader)
      }, portions: portion.map { $0...$0 } ?? StoreReader.portions)
    #expect(source.nextOffset == offset)
    readers.append(Reader(source: source, deletionsFrom: deletionsFrom))
  }

  private func move() {
    let chosen = readers.indices.randomElement(using: &random)!
    let before = readers[chosen].source.nextOffset
    let offset =
      Bool.random(using: &random) ? min(before + 3, head) : UInt64.random(in: 0...head, using: &random)
    readers[chosen].source.move(to: offset, hint: hint)
    #expect(readers[chosen].source.nextOffset == offset)
  }

  private func read(_ index: Int, demand: UInt64? = nil) throws {
    var reader = readers[index]
    defer { readers[index] = reader }
    let before = reader.source.nextOffset
    let demand = demand ?? [0, 1, 2, 7, .max].randomElement(using: &random)!
    let limit =
      Int.random(in: 0..<3, using: &random) == 0 ? before + .random(in: 1...9, using: &random) : .max
    let bytes = [1, 50, 500, 9_000].randomElement(using: &random).map { portion ?? $0 }!
    let largest = [40, 450, .max].randomElement(using: &random)!
    let isFiltered = reader.source.matcher != nil
    let wasCompacted = reader.source.isCompacted
    let step = reader.source.next(demand: demand, before: limit, bytes: bytes, largest: largest, hint: hint)
    let next = reader.source.nextOffset
    switch step {
    case .run(let slice, let mark):
      #expect(!wasCompacted)
      #expect(slice.firstOffset == before && next == before + UInt64(slice.count) && next <= limit)
      #expect(slice.bytes.count <= (isFiltered ? bytes : min(bytes, largest)) || slice.count == 1)
      #expect(isFiltered || UInt64(slice.count) <= demand)
      if let mark { reader.time = mark }
      try check(slice, &reader)
      if Bool.random(using: &random), let request = reader.source.readAhead() {
        reader.loaded.append((request, try load(request)))
      }
    case .copies(let copies, _):
      try check(copies, demand: demand, largest: largest, from: before, &reader)
    case .passed:
      #expect(kind == .compact && next > before)
      #expect(newest(from: before, before: next, reader).isEmpty)
    case .demandExhausted:
      #expect(demand == 0 && next < head)
    case .caughtUp:
      #expect(before == head && next == head)
    case .lagged(let missed):
      #expect(missed > 0)
      switch kind {
      case .memory: #expect(next == before + missed && next == epoch.log.oldestOffset)
      case .durable: #expect(next == before + missed && next <= storage.firstOffset)
      case .compact:
        if next == before {
          reader.deletionsFrom = max(reader.deletionsFrom, before) + missed
        } else {
          #expect(next == before + missed)
        }
      }
    case .loading(let request):
      #expect(kind == .durable && next == before && before < epoch.log.oldestOffset)
      guard let request else { break }
      #expect(request.offset == before)
      // Storage fails at times, and some results arrive late.
      if Int.random(in: 0..<4, using: &random) == 0 {
        reader.source.take(StoredRecords(segment: nil, next: before, isFailure: true), for: request)
        #expect(reader.source.awaits(request))
        reader.source.abandon(request)
      } else {
        reader.loaded.append((request, try load(request)))
        if Bool.random(using: &random) { handOver(to: &reader) }
      }
    }
  }

  private func handOver(to reader: inout Reader) {
    for (request, records) in reader.loaded { reader.source.take(records, for: request) }
    reader.loaded = []
  }

  /// Runs a request. Returns its records.
  func load(_ request: StoreRequest) throws -> StoredRecords {
    let result = LoadResult()
    request.load(of: Self.topic, on: loop) { records in result.records.withLock { $0 = records } }
    #expect(world.run { result.records.withLock { $0 != nil } })
    return try #require(result.records.withLock { $0.take() })
  }

  // MARK: What readers get

  private func check(_ slice: LogSlice, _ reader: inout Reader) throws {
    var ends: [(position: Int, time: Int64)] = []
    let read = try decode(slice.bytes, &reader.time, ends: &ends)
    let first = Int(slice.firstOffset)
    #expect(read == Array(records[first..<first + slice.count]))
    // A filter that finds no demand steps back.
    guard Bool.random(using: &random) else { return }
    let back = Int.random(in: 0..<slice.count, using: &random)
    let stay = slice.count - back - 1
    reader.source.stepBack(records: back, bytes: slice.bytes.count - ends[stay].position)
    reader.time = ends[stay].time
    #expect(reader.source.nextOffset == slice.firstOffset + UInt64(stay) + 1)
  }

  private func check(
    _ copies: CopiedRecords, demand: UInt64, largest: Int, from before: UInt64, _ reader: inout Reader
  ) throws {
    var expected = newest(from: before, before: reader.source.compactedEnd, reader)[...]
    var count: UInt64 = 0
    let block = copies.fill { header, firstOffset, records, length in
      let items = UnsafeRawBufferPointer(start: header + WriteBatch.deliverHeader, count: length)
      let read = (try? decode(items, &reader.time)) ?? []
      #expect(read.count == Int(records))
      #expect(length <= largest || records == 1)
      for (index, record) in read.enumerated() {
        #expect(expected.popFirst() == firstOffset + UInt64(index))
        #expect(record == self.records[Int(firstOffset) + index])
      }
      count += UInt64(records)
    }
    #expect(block != nil)
    #expect(count == copies.count && count > 0 && count <= demand)
    let next = reader.source.nextOffset
    #expect(next > before && next <= expected.first ?? .max)
  }

  /// The offsets of the newest records and deletions that a reader should get, if none was dropped.
  private func newest(from offset: UInt64, before end: UInt64, _ reader: Reader) -> [UInt64] {
    guard offset < end else { return [] }
    let last = Dictionary(records.enumerated().map { ($1.key, $0) }) { $1 }
    return (offset..<end).filter { offset in
      let record = records[Int(offset)]
      guard last[record.key] == Int(offset) else { return false }
      if reader.source.matcher != nil, !record.isWanted { return false }
      return !record.isDeletion || offset >= reader.deletionsFrom
    }
  }

  func decode(_ items: UnsafeRawBufferPointer, _ time: inout Int64?) throws -> [Record] {
    var ends: [(position: Int, time: Int64)] = []
    return try decode(items, &time, ends: &ends)
  }

  /// - Parameter ends: the end of each record.
  private func decode(
    _ items: UnsafeRawBufferPointer, _ time: inout Int64?, ends: inout [(position: Int, time: Int64)]
  ) throws -> [Record] {
    if time == nil {
      #expect(!RecordLayout.isRecord(RecordLayout.word(at: items.baseAddress!)), "a record has no time")
    }
    var iterator = BatchIterator(items, time: time ?? 0)
    var read: [Record] = []
    while let record = try iterator.next() {
      read.append(
        Record(
          key: nil, body: Array(record.body), isAttributed: record.isAttributed, isDeletion: false,
          time: record.time))
      ends.append((record.body.baseAddress! + record.body.count - items.baseAddress!, record.time))
    }
    time = iterator.time
    return read
  }
}
