import SluiceIO
import SluiceLog
import SluiceStore
import SluiceStoreLMDB
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Durable topics that keep the newest record of each key.
@Suite struct CompactStoreTests {
  /// Plays a story determined by its seed.
  private func play(_ seed: UInt64, on store: any TopicStore, rounds: Int) throws {
    var random = TestSupport.SeededRandom(seed: seed)
    let sync: TopicSettings.Sync = [.always, .always, .interval(80), .os].randomElement(using: &random)!
    let limit: UInt64? = [nil, nil, 4].randomElement(using: &random)!
    let (keys, largest) = [(3, 200), (6, 20_000), (20, 90_000)].randomElement(using: &random)!
    let story = try CompactStory(
      seed: seed, sync: sync, keys: keys, largest: largest, limit: limit, store: store)
    for _ in 0..<rounds {
      try story.publish(Int.random(in: 0...40, using: &random))
      story.read()
      switch Int.random(in: 0..<12, using: &random) {
      case 0, 1:
        story.kill()
        try story.restart()
      case 2, 3:
        // Crash in the middle of a commit.
        let isOnDisk = Bool.random(using: &random)
        story.disk.crashInCommit = (isOnDisk, { story.kill() })
        try story.publishAhead(20)
        story.settle(.milliseconds(500))
        story.disk.crashInCommit = nil
        story.kill()
        try story.restart()
      case 4: try story.stop()
      case 5:
        story.disk.health = .full
        try story.publishAhead(5)
        story.settle(.milliseconds(300))
        story.disk.health = .good
      case 6: try story.trim(.newest(UInt64.random(in: 0...5, using: &random)))
      case 7: try story.trim(.from(UInt64.random(in: 0...UInt64(story.stored), using: &random)))
      case 8: try story.set(limit: [nil, 2, 10].randomElement(using: &random)!)
      default: try story.audit()
      }
    }
    try story.audit()
    try story.stop()
    try story.audit()
    story.settle(.seconds(3))
    let (states, bytes) = try story.space()
    // One record for each key, and the marks.
    #expect(states <= 2 * keys + 1)
    let live = story.expected().reduce(0) { $0 + ($1.made.payload?.count ?? 0) }
    #expect(bytes < UInt64(2 * live + (3 << 20)))
    story.kill()
  }

  @Test(arguments: 1...60 as ClosedRange<UInt64>)
  func aDictionaryOfTheRecordsSurvivesCrashes(seed: UInt64) throws {
    try play(seed, on: MemoryStore(), rounds: 14)
  }

  @Test(arguments: 1...6 as ClosedRange<UInt64>)
  func aDictionaryOfTheRecordsSurvivesCrashesInAFileOfLMDB(seed: UInt64) throws {
    let directory = try TemporaryDirectory()
    var options = LMDBStore.Options()
    options.limit = 1 << 30
    let store = try LMDBStore.open(at: directory.path, options)
    try play(seed, on: store, rounds: 8)
    try store.close()
  }

  /// 100,000 records of 100 keys use hardly more space than 100 records.
  @Test func spaceIsBoundedByTheKeys() throws {
    let directory = try TemporaryDirectory()
    var options = LMDBStore.Options()
    options.limit = 1 << 30
    let store = try LMDBStore.open(at: directory.path, options)
    let story = try CompactStory(seed: 1, sync: .interval(20), keys: 50, largest: 100, store: store)
    for _ in 0..<50 { try story.publish(2_000, size: 100) }
    story.settle(.seconds(3))
    let (states, bytes) = try story.space()
    #expect(states <= 101)
    #expect(bytes < 2 << 20)
    let used = try store.size()?.used ?? .max
    #expect(used < 8 << 20)
    try story.stop()
    try story.audit()
    story.kill()
    try store.close()
  }
}

extension CompactStoreTests {
  /// The newest records in a broker's store: offset, key and bytes of payload.
  private func newest(on store: any TopicStore) throws -> [String] {
    let small = try SmallWorld(storage: StoreConfiguration(store))
    let newest = try #require(small.broker.core.registry.find(CompactStory.topic)?.epoch.newest)
    var shown: [String] = []
    let statistics = newest.statistics()
    guard statistics.records > 0 else { return [] }
    let end = newest.walk(
      from: statistics.firstOffset, before: statistics.head, deletionsFrom: statistics.head
    ) { record in
      CompactStory.records(in: record.item, from: record.offset) {
        shown.append("\($0.offset) \($0.made.key) \($0.made.payload?.count ?? 0)")
      }
      return true
    }
    #expect(end == .finished)
    return shown
  }

  @Test(arguments: [3, 60])
  func anExportHasTheNewestRecordsAndAnImportTakesThem(rounds: Int) throws {
    let store = MemoryStore()
    // After 60 rounds some of the newest records have left their batches.
    let story = try CompactStory(seed: 4, sync: .always, keys: 40, largest: 30_000, store: store)
    for _ in 0..<rounds { try story.publish(20) }
    try story.trim(.newest(rounds > 10 ? 1_000 : 6))
    try story.publish(1)
    story.settle(.seconds(3))
    #expect(try story.space().states > (rounds > 10 ? 3 : -1))
    try story.stop()
    story.kill()
    func export(_ store: MemoryStore) throws -> [UInt8] {
      var bytes: [UInt8] = []
      let summary = try StoreExport.run(store, report: { Issue.record("\($0)") }) {
        bytes += $0
        return nil
      }
      #expect(summary.topics == 1)
      return bytes
    }
    let bytes = try export(store)
    let other = MemoryStore()
    var position = 0
    let reader = ExportReader { buffer in
      let count = min(buffer.count, bytes.count - position)
      buffer.copyBytes(from: bytes[position..<position + count])
      position += count
      return .success(count)
    }
    _ = try StoreImport.run(into: other, replacing: false, from: reader)
    let verification = try StoreVerification.run(other) { Issue.record("\($0)") }
    #expect(verification.damaged == 0)
    let expected = story.expected().map { "\($0.offset) \($0.made.key) \($0.made.payload?.count ?? 0)" }
    #expect(try newest(on: other) == expected)
    #expect(try newest(on: store) == expected)
  }
}
