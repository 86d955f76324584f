import Foundation
import Glibc
import SluiceWire
import TestSupport
import Testing

@testable import SluiceStore
@testable import SluiceStoreLMDB

@Suite("Looking after a store on disk")
struct LMDBOfflineTests {
  private let scratch: ScratchDirectory
  private let topic = TopicID(rawValue: 1)

  init() throws {
    scratch = try ScratchDirectory()
    try use { try StoreScene.fill($0) }
  }

  private func open(_ access: LMDBStore.Access = .create) throws -> LMDBStore {
    try Self.open(scratch, access)
  }

  private static func open(
    _ scratch: ScratchDirectory, _ access: LMDBStore.Access = .create
  ) throws -> LMDBStore {
    var options = LMDBStore.Options()
    options.limit = 256 << 20
    options.access = access
    return try LMDBStore.open(at: scratch.path, options)
  }

  /// Opens the store, and closes it in order.
  private func use<Result>(_ body: (LMDBStore) throws -> Result) throws -> Result {
    let store = try open()
    let result = try body(store)
    try store.close()
    return result
  }

  private func findings() throws -> [StoreFinding] {
    try StoreScene.findings(open(.readOnly))
  }

  @discardableResult
  private func repair() throws -> [StoreRepair.Step.Action] {
    let store = try open(.existing)
    var steps: [StoreRepair.Step.Action] = []
    _ = try StoreRepair.run(store, isDryRun: false, found: { _ in }, done: { steps.append($0.action) })
    try store.leave()
    return steps
  }

  private var data: Data {
    get throws { try Data(contentsOf: URL(filePath: "\(scratch.path)/data.mdb")) }
  }

  private static func key(_ numbers: UInt64...) -> [UInt8] {
    numbers.flatMap { number in withUnsafeBytes(of: number.bigEndian) { Array($0) } }
  }

  // MARK: Verifying and repairing

  @Test func lookingChangesNothing() throws {
    let before = try data
    #expect(try findings().isEmpty)
    _ = try StoreScene.export(open(.readOnly))
    _ = try StoreStatistics(of: open(.readOnly))
    #expect(try repair().isEmpty)
    #expect(try data == before)
    #expect(scratch.names == ["data.mdb", "data.mdb-lock", "lock", "reserve"])
  }

  @Test func aStoreThatWasLetGoIsFreeThoughAChildInheritedIt() throws {
    var inherited: [Int32] = []
    defer { for descriptor in inherited { close(descriptor) } }
    try use { _ in
      for name in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
        let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")
        // As a fork does.
        if target == "\(scratch.path)/lock", let descriptor = Int32(name) {
          inherited.append(fcntl(descriptor, F_DUPFD_CLOEXEC, 0))
        }
      }
    }
    #expect(!inherited.isEmpty)
    #expect(throws: Never.self) { try use { _ in } }
  }

  @Test func aStoreThatWasNotClosedStaysSo() throws {
    do {
      let store = try open()
      try StoreScene.fill(store, "other", id: 2)
    }
    #expect(try repair().isEmpty)
    #expect(try !open(.readOnly).contents().wasClosed)
    try LMDBTampering.set(scratch.path, "batches", Self.key(1, 3), [1])
    #expect(try repair().count == 1)
    #expect(try !open(.readOnly).contents().wasClosed)
    do { _ = try open(.existing).compact() }
    #expect(try !open(.readOnly).contents().wasClosed)
  }

  @Test func damagedBatchesAreFoundAndTakenOut() throws {
    try LMDBTampering.change(scratch.path, "batches") { key, value in
      guard key == Self.key(1, 3) else { return value }
      var value = value
      value[60] ^= 1
      return value
    }
    try LMDBTampering.set(scratch.path, "batches", Self.key(1, 0), [])
    #expect(
      try findings() == [
        .init(.batchTooShort(bytes: 0), topic: topic, name: "orders", batch: 0, missing: 0..<3),
        .init(.batchChecksum, topic: topic, name: "orders", batch: 3, missing: 3..<5),
      ])
    #expect(try repair().count == 3)
    #expect(try findings().isEmpty)
    let store = try open(.readOnly)
    #expect(try StoreScene.records(store).keys.sorted() == [5, 6, 7, 8, 9])
    #expect(try store.contents().wasClosed)
    #expect(try store.extent(of: topic)?.firstOffset == 5)
  }

  @Test("a topic's row that can't be read gets another", arguments: [0, 39, 40, 60])
  func rows(length: Int) throws {
    try use { try StoreScene.fill($0, "other", id: 2) }
    try LMDBTampering.change(scratch.path, "topics") { key, value in
      key == Self.key(1) ? Array(value.prefix(length)) : value
    }
    #expect(try findings().first?.problem.code == "row")
    #expect(throws: StoreError.self) { try open(.readOnly).contents() }
    let (bytes, damaged) = try StoreScene.export(open(.readOnly))
    #expect(damaged.map(\.problem.code) == ["row"])
    let other = MemoryStore()
    try StoreScene.import(bytes, into: other)
    #expect(try other.contents().topics.map(\.row.name) == ["other"])

    try repair()
    #expect(try findings().isEmpty)
    let store = try open(.readOnly)
    let contents = try store.contents()
    #expect(contents.topics.map(\.row.name) == ["recovered.1", "other"])
    #expect(contents.topics[0].extent == contents.topics[1].extent)
    #expect(try StoreScene.records(store).count == 10)
  }

  @Test func extentsThatCanNotBeAreFoundAgain() throws {
    let before = try open(.readOnly).extent(of: topic)
    for position in stride(from: 0, to: TopicEntry.rowPosition, by: 8) {
      try LMDBTampering.change(scratch.path, "topics") { _, value in
        var value = value
        for byte in position..<position + 8 { value[byte] = 0x7F }
        return value
      }
      #expect(try findings().map(\.problem.code) == ["extent-unreadable"], "\(position)")
      try repair()
      #expect(try findings().isEmpty)
      #expect(try open(.readOnly).extent(of: topic) == before)
    }
    // Batches of a topic without records.
    try LMDBTampering.change(scratch.path, "topics") { _, value in
      [UInt8](repeating: 0, count: TopicEntry.rowPosition) + value[TopicEntry.rowPosition...]
    }
    try repair()
    #expect(try open(.readOnly).extent(of: topic) == before)
  }

  @Test func statesStraysAndNumbers() throws {
    try LMDBTampering.set(scratch.path, "states", Self.key(1) + [9, 1, 2], [1])
    try LMDBTampering.set(scratch.path, "states", Self.key(1), [1])
    try LMDBTampering.set(scratch.path, "states", Self.key(5) + [1, 1], [1])
    try LMDBTampering.set(scratch.path, "batches", Self.key(4, 17), [1])
    try LMDBTampering.set(scratch.path, "meta", Array("nextTopic".utf8), [1, 0, 0, 0, 0, 0, 0, 0])
    #expect(
      try findings().map { "\($0.topic.rawValue) \($0.problem.code)" } == [
        "4 strays", "5 strays", "1 next-topic", "1 state", "1 state",
      ])
    #expect(try repair().count == 5)
    #expect(try findings().isEmpty)
    let store = try open(.readOnly)
    #expect(try store.contents().nextTopic > TopicID(rawValue: 5))
    #expect(try StoreScene.records(store).count == 10)
    for kind in [StoredState.Kind.producer, .cursor, .group] {
      #expect(try store.states(of: topic, kind).count == 1)
    }
  }

  @Test func deletedTopicsAreNoStrays() throws {
    try use { store in
      try StoreScene.fill(store, "other", id: 2)
      var change = TopicChange(TopicID(rawValue: 2))
      change.isDeletion = true
      try store.commit([change])
    }
    #expect(try findings().isEmpty)
  }

  // MARK: Statistics

  @Test func whatIsThereIsCounted() throws {
    let statistics = try StoreStatistics(of: open(.readOnly))
    let topic = try #require(statistics.topics.first)
    #expect(statistics.topics.count == 1 && statistics.records == 10 && statistics.bytes == 52)
    #expect(topic.row?.name == "orders" && topic.batches == 3 && topic.records == 10)
    #expect(topic.firstTime == 1_000 && topic.lastTime == 3_000)
    #expect(topic.producers == 1 && topic.cursors == 1 && topic.groups == 1)
    #expect(topic.stored == 3 * 48 + 52 + 3 * 12)
    #expect(statistics.wasClosed && statistics.size.limit == 256 << 20)
    #expect(statistics.size.files == UInt64(try data.count))
    #expect(statistics.size.reusable < statistics.size.files)
  }

  // MARK: Export and import

  @Test("every kind of store makes the same export of the same topics")
  func sameExports() throws {
    var random = SeededRandom.printed(for: "same exports")
    for _ in 0..<10 {
      let memory = MemoryStore()
      let scratch = try ScratchDirectory()
      let store = try Self.open(scratch)
      var other = random
      try StoreScene.fill(memory, &random)
      try StoreScene.fill(store, &other)
      let (bytes, findings) = try StoreScene.export(store)
      #expect(findings.isEmpty)
      #expect(try StoreScene.export(memory).bytes == bytes)
      let names = try store.contents().topics.map(\.row.name)
      let elsewhere = try ScratchDirectory()
      let third = try Self.open(elsewhere)
      try StoreScene.fill(third, "first", id: 5)
      try StoreScene.import(bytes, into: third)
      #expect(
        try StoreScene.contents(StoreScene.export(third, topics: names).bytes) == StoreScene.contents(bytes))
      #expect(try StoreScene.findings(third).isEmpty)
      try StoreScene.import(bytes, into: third, replacing: true)
      #expect(
        try StoreScene.contents(StoreScene.export(third, topics: names).bytes) == StoreScene.contents(bytes))
      #expect(try StoreScene.findings(third).isEmpty)
      #expect(try third.contents().topics.count == names.count + 1)
    }
  }

  @Test func anImportThatEndsEarlyLeavesNothing() throws {
    let (bytes, _) = try StoreScene.export(open(.readOnly))
    let other = try ScratchDirectory()
    do {
      let store = try Self.open(other)
      #expect(throws: StoreError.self) { try StoreScene.import(Array(bytes.dropLast(20)), into: store) }
      #expect(try store.contents().topics.isEmpty)
      #expect(try StoreScene.findings(store).isEmpty)
      #expect(try !store.reclaim())
      try store.leave()
    }
    // The process ends in the middle.
    do {
      let store = try Self.open(other)
      let id = try store.prepareTopic()
      let batch = try #require(try StoreScene.batches([["a"]], of: id).first)
      try store.load([LoadedBatch(firstOffset: 0, value: Array(batch.value))], [], into: id)
    }
    let store = try Self.open(other)
    #expect(try store.contents().topics.isEmpty)
    #expect(try StoreScene.findings(store).isEmpty)
    while try store.reclaim() {}
    try StoreScene.import(bytes, into: store)
    #expect(try store.contents().topics.map(\.row.name) == ["orders"])
  }

  @Test func onlyPreparedTopicsCanBeLoaded() throws {
    let store = try open()
    #expect(throws: StoreError.self) {
      try store.load([], [.init(.cursor, key: [1], value: [])], into: topic)
    }
    let unknown = LoadedTopic(id: TopicID(rawValue: 9), row: StoreScene.row("x"), extent: StoredExtent())
    #expect(throws: StoreError.self) { try store.adopt([unknown]) }
    #expect(try store.contents().topics.count == 1)
  }

  @Test func aTopicThatWasImportedGoesOn() throws {
    let (bytes, _) = try StoreScene.export(open(.readOnly))
    let elsewhere = try ScratchDirectory()
    let store = try Self.open(elsewhere)
    try StoreScene.fill(store, "first", id: 3)
    try StoreScene.import(bytes, into: store)
    let id = try #require(try store.contents().topics.last?.id)
    #expect(id == TopicID(rawValue: 4))
    var change = TopicChange(id)
    change.batches = try StoreScene.batches([["next"]], of: id, from: 10, bytesBefore: 52)
    change.truncateBefore = 5
    try store.commit([change])
    #expect(try StoreScene.records(store, 4).keys.sorted() == [5, 6, 7, 8, 9, 10])
  }

  // MARK: Compacting

  @Test func aCompactedStoreIsTheSameAndSmaller() throws {
    try use { store in
      for number: UInt64 in 2...40 {
        try StoreScene.fill(store, "topic.\(number)", id: number)
        var change = TopicChange(TopicID(rawValue: number))
        let payload = String(repeating: "x", count: 50_000)
        change.batches = try StoreScene.batches([[payload]], of: change.topic, from: 10, bytesBefore: 52)
        try store.commit([change])
      }
      for number: UInt64 in 2...39 {
        var change = TopicChange(TopicID(rawValue: number))
        change.isDeletion = true
        try store.commit([change])
      }
    }
    try Data("left".utf8).write(to: URL(filePath: "\(scratch.path)/new.mdb"))
    let store = try open(.existing)
    let sizes = try store.compact()
    #expect(sizes.after * 5 < sizes.before)
    #expect(UInt64(try data.count) == sizes.after)
    #expect(scratch.names == ["data.mdb", "data.mdb-lock", "lock", "reserve"])
    withExtendedLifetime(store) {
      // No other process gets it before the compacting one releases it.
      let error = #expect(throws: StoreError.self) { try open() }
      #expect(error?.kind == .inUse)
    }
  }

  @Test func aCompactedStoreCanBeUsed() throws {
    let before = try StoreScene.export(open(.readOnly)).bytes
    do { _ = try open(.existing).compact() }
    #expect(try StoreScene.export(open(.readOnly)).bytes == before)
    #expect(try open(.readOnly).contents().wasClosed)
    #expect(try StoreStatistics(of: open(.readOnly)).size.reusable == 0)
    try use { try StoreScene.fill($0, "more", id: 2) }
    #expect(try findings().isEmpty)
  }
}
