import CLMDB
import Glibc
import SluiceWire
import Testing

@testable import SluiceStore
@testable import SluiceStoreLMDB

@Suite struct LMDBStoreTests {
  static let topic = TopicID(rawValue: 1)

  static func options(_ access: LMDBStore.Access = .create, limit: Int = 64 << 20)
    -> LMDBStore.Options
  {
    var options = LMDBStore.Options()
    options.access = access
    options.limit = limit
    return options
  }

  private static func mode(_ path: String) -> UInt32 {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
  }

  @Test func aNewStoreIsEmptyAndItsOwnersAlone() throws {
    let scratch = try ScratchDirectory()
    let path = "\(scratch.path)/store"
    let store = try LMDBStore.open(at: path)
    let contents = try store.contents()
    #expect(contents.topics.isEmpty)
    #expect(contents.nextTopic == TopicID(rawValue: 1))
    #expect(contents.wasClosed)
    #expect(Self.mode(path) == 0o700)
    for name in ["lock", "data.mdb", "data.mdb-lock"] { #expect(Self.mode("\(path)/\(name)") == 0o600) }
    try store.close()
  }

  @Test func whatWasCommittedIsThereAgain() throws {
    let scratch = try ScratchDirectory()
    var store = try LMDBStore.open(at: scratch.path, Self.options())
    try store.add(Self.topic, row: .named("a"), payloads: [[1, 2, 3], Array(repeating: 7, count: 70_000)])
    let batches = try store.stored(Self.topic)
    let contents = try store.contents()
    #expect(batches.map(\.offset) == [0, 1])
    try store.close()

    store = try LMDBStore.open(at: scratch.path, Self.options(.existing))
    #expect(try store.contents().topics == contents.topics)
    #expect(try store.contents().nextTopic == TopicID(rawValue: 2))
    #expect(try store.contents().wasClosed)
    #expect(try store.stored(Self.topic) == batches)
  }

  @Test func onlyAnOrderlyEndCountsAsOne() throws {
    let scratch = try ScratchDirectory()
    func open() throws -> LMDBStore { try LMDBStore.open(at: scratch.path, Self.options()) }
    var store: LMDBStore? = try open()
    try store?.add(Self.topic, row: .named("a"))
    store = nil
    store = try open()
    #expect(try store?.contents().wasClosed == false)
    try store?.close()
    store = nil
    store = try open()
    #expect(try store?.contents().wasClosed == true)
    store = nil
    // Nothing was committed in between.
    #expect(try open().contents().wasClosed)
  }

  @Test func anotherUserIsToldWhoHasIt() throws {
    let scratch = try ScratchDirectory()
    var store: LMDBStore? = try LMDBStore.open(at: scratch.path, Self.options())
    for access in [LMDBStore.Access.create, .existing, .readOnly] {
      let error = #expect(throws: StoreError.self) {
        _ = try LMDBStore.open(at: scratch.path, Self.options(access))
      }
      #expect(error?.kind == .inUse)
      #expect(error?.message.contains("process \(getpid())") == true)
      #expect(error?.message.contains(scratch.path) == true)
    }
    #expect(try store?.contents().topics.isEmpty == true)
    store = nil
    _ = try LMDBStore.open(at: scratch.path, Self.options())
  }

  @Test func severalMayReadTogether() throws {
    let scratch = try ScratchDirectory()
    let store = try LMDBStore.open(at: scratch.path, Self.options())
    try store.add(Self.topic, row: .named("a"), payloads: [[1]])
    try store.close()
    let readers = try (0..<3).map { _ in try LMDBStore.open(at: scratch.path, Self.options(.readOnly)) }
    for reader in readers {
      #expect(try reader.stored(Self.topic).count == 1)
      #expect(throws: StoreError.self) { try reader.add(Self.topic, payloads: [[2]]) }
    }
    #expect(throws: StoreError.self) { _ = try LMDBStore.open(at: scratch.path, Self.options()) }
  }

  @Test func aDirectoryOfSomethingElseIsLeftAlone() throws {
    let scratch = try ScratchDirectory()
    func kind(_ path: String, _ access: LMDBStore.Access) -> StoreError.Kind? {
      #expect(throws: StoreError.self) { _ = try LMDBStore.open(at: path, Self.options(access)) }?.kind
    }
    #expect(kind("\(scratch.path)/none", .existing) == .notAStore)
    #expect(kind("\(scratch.path)/none", .readOnly) == .notAStore)
    #expect(kind("\(scratch.path)/none/store", .create) == .failed)
    #expect(kind(scratch.path, .existing) == .notAStore)
    #expect(scratch.names == [])
    close(open("\(scratch.path)/letter.txt", O_CREAT | O_WRONLY, 0o600))
    #expect(kind(scratch.path, .create) == .notAStore)
    #expect(kind("\(scratch.path)/letter.txt", .create) == .notAStore)
    #expect(scratch.names == ["letter.txt"])
  }

  @Test func othersAreKeptOutOfADirectoryThatWasThere() throws {
    let scratch = try ScratchDirectory()
    chmod(scratch.path, 0o755)
    var store: LMDBStore? = try LMDBStore.open(at: scratch.path, Self.options())
    #expect(Self.mode(scratch.path) == 0o700)
    try store?.close()
    store = nil
    chmod(scratch.path, 0o1777)
    #expect(throws: StoreError.self) { _ = try LMDBStore.open(at: scratch.path, Self.options()) }
    #expect(Self.mode(scratch.path) == 0o777)
  }

  @Test func aStoreThatWasNeverFinishedIsMadeAnew() throws {
    let scratch = try ScratchDirectory()
    for name in ["new.mdb", "new.mdb-lock"] {
      let file = open("\(scratch.path)/\(name)", O_CREAT | O_WRONLY, 0o600)
      _ = write(file, "half", 4)
      close(file)
    }
    let store = try LMDBStore.open(at: scratch.path, Self.options())
    try store.add(Self.topic, row: .named("a"))
    #expect(scratch.names == ["data.mdb", "data.mdb-lock", "lock", "reserve"])
  }

  @Test func anOlderStoreIsBroughtUpToDateAndANewerOneRefused() throws {
    let scratch = try ScratchDirectory()
    let old = LMDBSchema(version: 0, migrations: [:])
    let first = try LMDBStore(scratch.path, Self.options(), old)
    try first.add(Self.topic, row: .named("a"))
    try first.close()

    let failing = LMDBSchema(
      version: 1, migrations: [0: { _ throws(StoreError) in throw StoreError(.failed, "no") }])
    #expect(throws: StoreError(.failed, "no")) { _ = try LMDBStore(scratch.path, Self.options(), failing) }
    let renaming = LMDBSchema(
      version: 1,
      migrations: [
        0: { transaction throws(StoreError) in
          guard let topics = try transaction.table(named: "topics") else { return }
          let entry = TopicEntry(.named("b"))
          let topic = TopicID(rawValue: 1)
          let bytes = try transaction.reserve(topics, TopicKey(topic), count: entry.count)
          entry.write(to: bytes, for: topic)
        }
      ])
    #expect(throws: StoreError.self) { _ = try LMDBStore(scratch.path, Self.options(.readOnly), renaming) }
    for _ in 0..<2 {
      let store = try LMDBStore(scratch.path, Self.options(), renaming)
      #expect(try store.contents().topics.map(\.row.name) == ["b"])
      try store.close()
    }
    let error = #expect(throws: StoreError.self) { _ = try LMDBStore(scratch.path, Self.options(), old) }
    #expect(error?.kind == .newer)
    #expect(error?.message.contains("version 1") == true)
    #expect(error?.message.contains(scratch.path) == true)
  }

  @Test func aFullBatchTakesSixteenPages() throws {
    let scratch = try ScratchDirectory()
    let store = try LMDBStore.open(at: scratch.path, Self.options())
    try store.add(Self.topic, row: .named("a"))
    func pages() -> Int {
      var status = stat()
      stat("\(scratch.path)/data.mdb", &status)
      return Int(status.st_size) / 4096
    }
    let payload = [UInt8](repeating: 1, count: BatchBlock.fullBytes - BatchHeader.size - 12 - 4)
    let before = pages()
    try store.add(Self.topic, payloads: Array(repeating: payload, count: 100))
    #expect(try store.stored(Self.topic).allSatisfy { $0.bytes.count == BatchBlock.fullBytes })
    #expect(1600..<1620 ~= pages() - before)
  }

  @Test func aFullStoreCanBeEmptied() throws {
    let scratch = try ScratchDirectory()
    let store = try LMDBStore.open(at: scratch.path, Self.options(limit: 1 << 20))
    try store.add(Self.topic, row: .named("a"))
    let other = TopicID(rawValue: 2)
    try store.add(other, row: .named("b"))
    for size in [100_000, 10_000, 500] {
      var error: StoreError?
      while error == nil {
        do {
          try store.add(Self.topic, payloads: [Array(repeating: 1, count: size)])
        } catch let thrown as StoreError {
          error = thrown
        }
      }
      #expect(error?.kind == .full)
    }
    let extent = try #require(try store.extent(of: Self.topic))
    #expect(UInt64(try store.stored(Self.topic).count) == extent.head)
    var change = TopicChange(Self.topic)
    change.states = [.init(.cursor, key: [1], value: [2])]
    change.truncateBefore = extent.head
    try store.commit([change])
    #expect(try store.stored(Self.topic).isEmpty)
    for _ in 0..<5 { try store.add(other, payloads: [Array(repeating: 1, count: 50_000)]) }
    var status = stat()
    stat("\(scratch.path)/data.mdb", &status)
    #expect(Int(status.st_size) <= 1 << 20 + LMDBStore.reserve)
  }

  private static func entries(_ store: LMDBStore) throws -> [Int] {
    try store.read { reader throws(StoreError) in
      [reader.tables.batches, reader.tables.states, reader.tables.garbage].map { table in
        var statistics = MDB_stat()
        mdb_stat(reader.transaction.pointer, table, &statistics)
        return Int(statistics.ms_entries)
      }
    }
  }

  @Test func aDeletedTopicGoesPieceByPiece() throws {
    let scratch = try ScratchDirectory()
    let store = try LMDBStore.open(at: scratch.path, Self.options())
    try store.add(Self.topic, row: .named("a"), payloads: Array(repeating: [1], count: 700))
    try store.add(TopicID(rawValue: 2), row: .named("b"), payloads: [[1]])
    var change = TopicChange(Self.topic)
    change.states = (0..<100).map { .init(.producer, key: [$0], value: []) }
    try store.commit([change])
    change = TopicChange(Self.topic)
    change.isDeletion = true
    try store.commit([change])
    #expect(try Self.entries(store) == [701, 100, 1])
    #expect(try store.contents().topics.map(\.row.name) == ["b"])
    var isMore = true
    var calls = 0
    while isMore {
      let before = try Self.entries(store).reduce(0, +)
      isMore = try store.reclaim()
      calls += 1
      #expect(try before - Self.entries(store).reduce(0, +) <= 257)
    }
    #expect(calls == 4)
    #expect(try Self.entries(store) == [1, 0, 0])
    change = TopicChange(Self.topic)
    change.row = .named("a")
    #expect(try store.contents().nextTopic == TopicID(rawValue: 3))
  }

  @Test func aLongTruncationGoesOnAtTheNext() throws {
    let scratch = try ScratchDirectory()
    let store = try LMDBStore.open(at: scratch.path, Self.options())
    try store.add(Self.topic, row: .named("a"), payloads: Array(repeating: [1], count: 600))
    var change = TopicChange(Self.topic)
    change.truncateBefore = 590
    for first in [256, 512, 590, 590] as [UInt64] {
      try store.commit([change])
      let extent = try #require(try store.extent(of: Self.topic))
      #expect((extent.firstOffset, extent.bytesBefore) == (first, first * 5))
      #expect(try store.stored(Self.topic).first?.offset == first)
    }
  }

  @Test func lessAddressSpaceIsEnough() throws {
    let scratch = try ScratchDirectory()
    let watch = try DiskWatch(scratch.path)
    var store: LMDBStore? = try LMDBStore.open(at: scratch.path, Self.options())
    store = nil
    watch.refuse(.maps, count: 3, error: ENOMEM)
    store = try LMDBStore.open(at: scratch.path, Self.options(limit: 5 << 30))
    #expect(try store?.use { $0.limit } == 1 << 30)
    try store?.add(Self.topic, row: .named("a"))
    store = nil
    watch.refuse(.maps, count: 10, error: ENOMEM)
    #expect(throws: StoreError.self) {
      _ = try LMDBStore.open(at: scratch.path, Self.options(limit: 5 << 30))
    }
  }

  @Test func afterItsEndNothingIsDone() throws {
    let scratch = try ScratchDirectory()
    let store = try LMDBStore.open(at: scratch.path, Self.options())
    try store.close()
    #expect(throws: StoreError.self) { try store.contents() }
    #expect(throws: StoreError.self) { try store.add(Self.topic, row: .named("a")) }
    _ = try LMDBStore.open(at: scratch.path, Self.options())
  }
}
