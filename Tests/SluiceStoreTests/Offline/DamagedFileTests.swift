import Foundation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceStore
@testable import SluiceStoreLMDB

/// Files that are truncated or have lost pages: a repaired store is complete in itself.
@Suite("Stores whose files are damaged", .serialized)
struct DamagedFileTests {
  private static let pageSize = 4096
  private static let topics: UInt64 = 3

  /// The bytes of a store with topics of small and of large batches, states, and free pages.
  private static func soundFile() throws -> Data {
    let scratch = try ScratchDirectory()
    let store = try open(scratch, .create)
    for number in 1...topics {
      let topic = TopicID(rawValue: number)
      try StoreScene.fill(store, "topic.\(number)", id: number)
      for round in 0..<40 {
        let count = round % 10 == 0 ? 20_000 : 300
        try store.add(topic, payloads: [[UInt8](repeating: UInt8(number), count: count)], time: 10_000)
      }
      var change = TopicChange(topic)
      change.truncateBefore = 20
      change.states = (0..<30).map {
        .init(.cursor, key: Array("cursor \($0)".utf8), value: [UInt8](repeating: 1, count: 100))
      }
      try store.commit([change])
    }
    try store.close()
    return try Data(contentsOf: URL(filePath: "\(scratch.path)/data.mdb"))
  }

  private static func open(_ scratch: ScratchDirectory, _ access: LMDBStore.Access) throws -> LMDBStore {
    var options = LMDBStore.Options()
    options.limit = 64 << 20
    options.access = access
    return try LMDBStore.open(at: scratch.path, options)
  }

  private static func directory(with file: Data) throws -> ScratchDirectory {
    let scratch = try ScratchDirectory()
    try file.write(to: URL(filePath: "\(scratch.path)/data.mdb"))
    return scratch
  }

  @Test("The check of the structure says how far it is, and can be stopped")
  func progress() throws {
    let file = try Self.soundFile()
    let scratch = try Self.directory(with: file)
    var told: [UInt64] = []
    var all: Set<UInt64> = []
    #expect(
      try LMDBStore.pageFaults(at: scratch.path) { done, total in
        told.append(done)
        all.insert(total)
        return true
      } == [])
    #expect(told.count > 10 && told == told.sorted() && told.first! < told.last!)
    let total = try #require(all.first)
    #expect(all.count == 1 && told.last! <= total && total <= file.count)
    var calls = 0
    #expect(throws: StoreError.self) {
      try LMDBStore.pageFaults(at: scratch.path) { _, _ in
        calls += 1
        return calls < 5
      }
    }
    #expect(calls == 5)
    #expect(throws: StoreError.self) { try LMDBStore.rebuild(at: scratch.path) { _, _ in false } }
    #expect(try Data(contentsOf: URL(filePath: "\(scratch.path)/data.mdb")) == file)
  }

  @Test(
    "A repair says how far it is while it checks, copies and checks again, and can be stopped while it copies"
  )
  func repairProgress() throws {
    var file = try Self.soundFile()
    file.replaceSubrange(6 * Self.pageSize..<9 * Self.pageSize, with: Data(count: 3 * Self.pageSize))
    let size = UInt64(file.count)
    let scratch = try Self.directory(with: file)
    var told: [(done: UInt64, total: UInt64)] = []
    #expect(throws: StoreError.self) {
      try LMDBStore.rebuild(at: scratch.path, limit: 64 << 20) { done, total in
        told.append((done, total))
        // Shortly after the check of the old file.
        return total <= size || done < size + size / 4
      }
    }
    #expect(told.contains { $0.total <= size } && told.last!.total == 3 * size)
    #expect(try Data(contentsOf: URL(filePath: "\(scratch.path)/data.mdb")) == file)
    told = []
    #expect(
      try LMDBStore.rebuild(at: scratch.path, limit: 64 << 20) { done, total in
        told.append((done, total))
        return true
      } != nil)
    let copied = told.filter { $0.total == 3 * size }
    #expect(copied.map(\.done) == copied.map(\.done).sorted())
    #expect(copied.contains { $0.done < 2 * size } && copied.contains { $0.done > 2 * size })
    #expect(copied.allSatisfy { $0.done >= size && $0.done <= 3 * size })
  }

  @Test("The structure of sound stores is found to be sound: new, used, emptied and compacted")
  func sound() throws {
    let scratch = try Self.directory(with: try Self.soundFile())
    #expect(try LMDBStore.pageFaults(at: scratch.path) == [])
    #expect(try LMDBStore.rebuild(at: scratch.path) == nil)
    _ = try Self.open(scratch, .existing).compact()
    #expect(try LMDBStore.pageFaults(at: scratch.path) == [])
    let store = try Self.open(scratch, .existing)
    for number in 1...Self.topics {
      var change = TopicChange(TopicID(rawValue: number))
      change.isDeletion = true
      try store.commit([change])
      while try store.reclaim() {}
    }
    try store.close()
    #expect(try LMDBStore.pageFaults(at: scratch.path) == [])
    let empty = try ScratchDirectory()
    try Self.open(empty, .create).close()
    #expect(try LMDBStore.pageFaults(at: empty.path) == [])
  }

  enum Damage: String, CaseIterable, Sendable {
    case cutOff
    case zeroedPages
    case randomPages
    case flippedBytes
    case giantSizes

    func apply(to file: inout Data, _ random: inout SeededRandom) {
      let pages = file.count / pageSize
      func page() -> Range<Int> {
        let page = Int.random(in: 0..<pages, using: &random)
        return page * pageSize..<(page + 1) * pageSize
      }
      switch self {
      case .cutOff: file = file.prefix(Int.random(in: 2 * pageSize..<file.count, using: &random))
      case .zeroedPages:
        for _ in 0...Int.random(in: 0...3, using: &random) {
          let page = page()
          file.replaceSubrange(page, with: Data(count: page.count))
        }
      case .randomPages:
        for index in page() { file[index] = .random(in: 0...255, using: &random) }
      case .flippedBytes:
        for _ in 0...20 {
          file[page().lowerBound + Int.random(in: 0..<64, using: &random)] = .random(
            in: 0...255, using: &random)
        }
      case .giantSizes:
        // The headers of entries are at the end of a page, those of pages at the start: overwrite sizes with all ones.
        for _ in 0...5 {
          let page = page()
          let place = page.lowerBound + Int.random(in: 0..<pageSize / 2, using: &random) * 2
          for index in place..<min(place + 8, page.upperBound) { file[index] = 0xFF }
        }
      }
    }
  }

  /// Repairs as the tool does. Returns false if nothing could be read.
  private func repair(_ scratch: ScratchDirectory) throws -> Bool {
    do {
      _ = try LMDBStore.rebuild(at: scratch.path, limit: 64 << 20)
    } catch {
      guard error.kind == .damaged || error.kind == .newer || error.kind == .failed else { throw error }
      return false
    }
    let store = try Self.open(scratch, .existing)
    _ = try StoreRepair.run(store, isDryRun: false, found: { _ in }, done: { _ in })
    try store.leave()
    return true
  }

  @Test("What is repaired verifies, compacts, exports, opens and serves", arguments: Damage.allCases)
  func repaired(_ damage: Damage) throws {
    let sound = try Self.soundFile()
    var repaired = 0
    for seed in 1...30 as ClosedRange<UInt64> {
      var random = SeededRandom(seed: seed)
      var file = sound
      damage.apply(to: &file, &random)
      let scratch = try Self.directory(with: file)
      guard try repair(scratch) else {
        // It is unchanged.
        #expect(try Data(contentsOf: URL(filePath: "\(scratch.path)/data.mdb")) == file, "seed \(seed)")
        continue
      }
      repaired += 1
      try check(scratch, "\(damage), seed \(seed)")
    }
    #expect(repaired > 20)
  }

  private func check(_ scratch: ScratchDirectory, _ what: String) throws {
    func verify() throws {
      let faults = try LMDBStore.pageFaults(at: scratch.path)
      #expect(faults == [], "\(what)")
      let store = try Self.open(scratch, .readOnly)
      var left: [StoreFinding] = []
      _ = try StoreVerification.run(store) { finding in
        if finding.isDamage, !finding.isLeftByRepair { left.append(finding) }
      }
      #expect(left.isEmpty, "\(what)")
      var bytes = 0
      let export = try StoreExport.run(
        store, report: { _ in },
        to: {
          bytes += $0.count
          return nil
        })
      #expect(export.topics > 0 || bytes > 0, "\(what)")
    }
    try verify()
    _ = try Self.open(scratch, .existing).compact()
    try verify()
    // As a broker does.
    let store = try Self.open(scratch, .create)
    let topics = try store.contents().topics
    for topic in topics {
      for batch in try store.stored(topic.id) {
        let isSound = batch.bytes.withUnsafeBytes { BatchView($0, of: topic.id, at: batch.offset) != nil }
        #expect(isSound, "\(what)")
      }
      try store.add(topic.id, payloads: [[1, 2, 3]], time: 20_000_000)
    }
    try store.close()
  }

  @Test("Everything that isn't on the lost page is kept")
  func nothingElseIsLost() throws {
    let sound = try Self.soundFile()
    let before = try Self.directory(with: sound)
    let store = try Self.open(before, .readOnly)
    let all = try store.stored(TopicID(rawValue: 2)).count
    #expect(all == 30)
    // The large batches have separate pages; remove one of them.
    let large = try #require(
      (2..<sound.count / Self.pageSize).first { page in
        let start = page * Self.pageSize
        return sound[start + 10] == 4 && sound[start + Self.pageSize + 100] == 2
      })
    var file = sound
    file.replaceSubrange(
      large * Self.pageSize..<(large + 1) * Self.pageSize, with: Data(count: Self.pageSize))
    let scratch = try Self.directory(with: file)
    #expect(try LMDBStore.pageFaults(at: scratch.path).count == 1)
    #expect(try repair(scratch))
    let repaired = try Self.open(scratch, .readOnly)
    let left = try (1...Self.topics).map { try repaired.stored(TopicID(rawValue: $0)).count }
    #expect(left.reduce(0, +) == 3 * all - 1)
    #expect(try repaired.states(of: TopicID(rawValue: 2), .cursor).count == 31)
  }

  @Test("A file of a newer LMDB is refused, and it is said what to do")
  func newerFormat() throws {
    var file = try Self.soundFile()
    for page in 0..<2 { file[page * Self.pageSize + LMDBMetaPage.versionPosition] = 2 }
    let scratch = try Self.directory(with: file)
    let error = #expect(throws: StoreError.self) { _ = try Self.open(scratch, .existing) }
    #expect(error?.kind == .newer)
    #expect(error?.message.contains("sluice store export") == true, "\(error?.message ?? "")")
    #expect(try Data(contentsOf: URL(filePath: "\(scratch.path)/data.mdb")) == file)
  }

  @Test("Nothing is written where LMDB's first pages aren't as this software knows them")
  func otherLayout() throws {
    let scratch = try Self.directory(with: try Self.soundFile())
    let path = "\(scratch.path)/data.mdb"
    let store = try Self.open(scratch, .readOnly)
    let last = store.lastCommit
    try LMDBMetaPage.check(path, lastCommit: last, pageSize: Self.pageSize)
    let error = #expect(throws: StoreError.self) {
      try LMDBMetaPage.check(path, lastCommit: last + 1, pageSize: Self.pageSize, library: "LMDB 1.0.0")
    }
    #expect(error?.kind == .newer)
    for word in ["LMDB 1.0.0", "Reading works", "export"] {
      #expect(error?.message.contains(word) == true, "\(error?.message ?? "")")
    }
  }
}
