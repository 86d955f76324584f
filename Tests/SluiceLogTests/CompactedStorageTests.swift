import SluiceWire
import TestSupport
import Testing

@testable import SluiceLog

/// Random histories of a stored topic with the newest record of each key: the content of a store after any commit is enough to restore the records. The
/// argument is the seed.
@Suite struct CompactedStorageTests {
  @Test(arguments: 0..<120 as Range<UInt64>)
  func theRecordsAreTakenUpAgainAfterEachCommit(seed: UInt64) throws {
    var history = StoredHistory(seed: seed)
    for _ in 0..<150 { try history.step() }
    try history.crash()
    try history.settle()
  }

  @Test func aRecordThatIsReplacedWhileItIsCarriedIsRemovedWithTheNextCommit() throws {
    var history = StoredHistory(seed: 1, isUnlimited: true)
    history.append("a", size: 10)
    try history.commit(portion: 1)
    history.append("b", size: 10)
    try history.commit(portion: 1)
    #expect(history.store.states.keys.sorted() == [0])
    history.append("a", size: 10)
    try history.commit(portion: 1)
    #expect(!history.store.states.keys.contains(0))
  }
}

/// A store's content for a topic, as simple as possible.
private struct NaiveStore {
  typealias Entry = (offset: UInt64, time: Int64, item: [UInt8])

  var states: [UInt64: (time: Int64, item: [UInt8])] = [:]
  var marks: CompactedRecords.Marks?
  var batches: [Entry] = []
  var head: UInt64 = 0
  var bytes: UInt64 = 0
  var time: Int64 = .min
}

private struct StoredHistory {
  private struct Logged {
    var key: String
    var isDeletion: Bool
    var item: [UInt8]
    var time: Int64
  }

  /// A store's bytes are so many times those of the records, so that few records are worth carrying.
  private static let scale: UInt64 = 100_000

  private var random: SeededRandom
  private let retention: Retention
  private let grace: Int
  private var records: CompactedRecords
  private(set) var store = NaiveStore()
  /// Records that were ever appended, as far as no crash has lost them.
  private var log: [Logged] = []
  private var clock: Int64 = 0

  init(seed: UInt64, isUnlimited: Bool = false) {
    random = SeededRandom(seed: seed)
    let limit: UInt64? = [nil, nil, 3, 8].randomElement(using: &random)!
    retention = Retention(records: isUnlimited ? nil : limit)
    grace = [0, 300, 5_000].randomElement(using: &random)!
    records = CompactedRecords(
      retention: retention, graceBytes: self.grace, chunkBytes: 1_024, isStored: true)
  }

  mutating func step() throws {
    clock += [0, 0, 1, 5].randomElement(using: &random)!
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<11: append("\(Int.random(in: 0..<12, using: &random))")
    case 11: _ = records.trim(to: .newest(UInt64.random(in: 0..<6, using: &random)))
    case 12: records.trim(now: clock)
    case 13: try crash()
    default: try commit()
    }
  }

  mutating func append(_ key: String, size: Int? = nil) {
    let isDeletion = size == nil && Int.random(in: 0..<4, using: &random) == 0
    let size = isDeletion ? 0 : size ?? [1, 9, 60, 2_000].randomElement(using: &random)!
    var batch = BatchBuilder()
    let payload = [UInt8](repeating: UInt8(truncatingIfNeeded: log.count), count: size)
    try? Array(key.utf8).withUnsafeBytes { key in
      try payload.withUnsafeBytes { try batch.append(key: key, headers: [], payload: $0) }
    }
    batch.bytes.withUnsafeBytes { records.append($0, at: clock) }
    log.append(Logged(key: key, isDeletion: isDeletion, item: batch.bytes, time: clock))
  }

  /// - Parameter portion: the most bytes to carry; nil for any.
  mutating func commit(portion: Int? = nil) throws {
    let portion = portion ?? [1, 100, 5_000].randomElement(using: &random)!
    var states = store.states
    let changes = records.takeStorageChanges(
      before: store.head, bytesThrough: store.bytes * Self.scale, portion: portion
    ) { states[$0.offset] = ($0.time, Array($0.item)) }
    for offset in changes.gone { states[offset] = nil }
    store.states = states
    store.marks = changes.marks ?? store.marks
    for offset in Int(store.head)..<log.count {
      store.batches.append((UInt64(offset), log[offset].time, log[offset].item))
      store.bytes += UInt64(log[offset].item.count)
      store.time = log[offset].time
    }
    store.head = UInt64(log.count)
    // A store may keep some records that it may drop.
    let slack = UInt64.random(in: 0..<3, using: &random)
    store.batches.removeAll { $0.offset + slack < changes.carriedBefore }
    #expect(changes.carriedBefore <= store.head)
  }

  /// Records that weren't stored are lost, and stored ones are restored.
  mutating func crash() throws {
    log.removeLast(log.count - Int(store.head))
    let restored = CompactedRecords(
      retention: retention, graceBytes: grace, chunkBytes: 1_024, isStored: true)
    restored.beginRestoring(
      store.marks, batchesFrom: store.batches.first?.offset ?? store.head, bytesBefore: 0)
    for (offset, state) in store.states.sorted(by: { $0.key < $1.key }) {
      state.item.withUnsafeBytes { restored.restore($0, at: offset, time: state.time) }
    }
    for batch in store.batches where batch.offset >= store.marks?.carriedBefore ?? 0 {
      batch.item.withUnsafeBytes { restored.restore($0, at: batch.offset, time: batch.time) }
    }
    restored.finishRestoring(head: store.head, time: store.time, now: clock, lostBefore: 0)
    records = restored
    restored._checkInvariants()
    try check()
  }

  /// Compares what late subscribers get, and which deletions are known, with the log.
  private func check() throws {
    var newest: [String: Int] = [:]
    for (offset, record) in log.enumerated() { newest[record.key] = offset }
    let marks = store.marks ?? .init(carriedBefore: 0, keptFrom: 0, deletionsFrom: 0)
    var kept = newest.values.filter { !log[$0].isDeletion && UInt64($0) >= marks.keptFrom }.sorted()
    if let limit = retention.records { kept = kept.suffix(Int(limit)) }
    let deleted = newest.values.filter { log[$0].isDeletion && UInt64($0) >= marks.deletionsFrom }.sorted()
    var deletionsFrom = marks.deletionsFrom
    var shown: [Int] = []
    let (start, head) = (records.statistics().firstOffset, UInt64(log.count))
    guard start < head else {
      #expect(kept.isEmpty)
      return
    }
    func walk(_ deletionsFrom: UInt64) -> CompactedWalk {
      shown = []
      return records.walk(from: start, before: head, deletionsFrom: deletionsFrom) { record in
        shown.append(Int(record.offset))
        #expect(Array(record.item) == log[Int(record.offset)].item)
        #expect(record.time == log[Int(record.offset)].time)
        return true
      }
    }
    var end = walk(deletionsFrom)
    if case .deletionsMissed(let next) = end {
      deletionsFrom = next
      end = walk(next)
    }
    #expect(end == .finished)
    #expect(shown.filter { !log[$0].isDeletion } == kept)
    #expect(
      shown.filter { log[$0].isDeletion }
        == deleted.filter { UInt64($0) >= max(deletionsFrom, start) })
  }

  /// After the last commits the store has no record that isn't needed.
  mutating func settle() throws {
    for _ in 0..<300
    where records.hasStorageChanges(before: store.head, bytesThrough: store.bytes * Self.scale) {
      try commit()
    }
    #expect(!records.hasStorageChanges(before: store.head, bytesThrough: store.bytes * Self.scale))
    let live = Set(
      Dictionary(log.enumerated().map { ($1.key, UInt64($0)) }) { $1 }.values)
    #expect(store.states.keys.allSatisfy { live.contains($0) && $0 < records.carriedBefore })
    try crash()
  }
}
