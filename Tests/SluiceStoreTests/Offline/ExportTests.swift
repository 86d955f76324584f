import Synchronization
import SluiceWire
import TestSupport
import Testing

@testable import SluiceStore

@Suite("Export and import")
struct ExportTests {
  private let store = MemoryStore()
  private let topic = TopicID(rawValue: 1)

  init() throws {
    try StoreScene.fill(store)
  }

  /// The kinds of a stream's sections.
  private func kinds(_ bytes: [UInt8]) throws -> [UInt8] {
    var kinds: [UInt8] = []
    var reader = ExportReader(StoreScene.source(bytes))
    while let section = try reader.next() {
      var writer = ByteWriter()
      kinds.append(section.encodeBody(into: &writer))
    }
    return kinds
  }

  /// A stream of these sections.
  private func stream(_ sections: [ExportSection]) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var writer = try ExportWriter {
      bytes += $0
      return nil
    }
    for section in sections { try writer.write(section) }
    return bytes
  }

  private func sections(_ bytes: [UInt8]) throws -> [ExportSection] {
    var sections: [ExportSection] = []
    var reader = ExportReader(StoreScene.source(bytes))
    while let section = try reader.next() { sections.append(section) }
    return sections
  }

  @Test("what was exported and imported is exported again as the same, in another epoch")
  func roundTrip() throws {
    var random = SeededRandom.printed(for: "export and import")
    for _ in 0..<100 {
      let store = MemoryStore()
      try StoreScene.fill(store, &random)
      // The other store has different topic numbers.
      let other = MemoryStore()
      if .random(using: &random) { try StoreScene.fill(other, "other", id: 7) }
      let (bytes, findings) = try StoreScene.export(store)
      #expect(findings.isEmpty)
      let summary = try StoreScene.import(bytes, into: other, piece: .random(in: 1...5_000, using: &random))
      let names = try store.contents().topics.map(\.row.name)
      #expect(summary.topics == UInt64(names.count))
      #expect(
        try StoreScene.contents(StoreScene.export(other, topics: names).bytes) == StoreScene.contents(bytes))
      #expect(try StoreScene.findings(other).isEmpty)
      #expect(try stream(sections(bytes)) == bytes)
    }
  }

  @Test func ofTwoTopicsWithANameTheLaterOneCounts() throws {
    try StoreScene.fill(store, "other", id: 2)
    store.damage(TopicID(rawValue: 2), .name("orders"))
    let other = MemoryStore()
    try StoreScene.import(try StoreScene.export(store).bytes, into: other)
    #expect(try other.contents().topics.map(\.row.lineage.last?.epoch) == [2])
    try StoreScene.import(try StoreScene.export(other).bytes, into: store, replacing: true)
    #expect(try store.contents().topics.map(\.id.rawValue) == [1, 3])
  }

  @Test func everythingOfATopicIsThere() throws {
    let other = MemoryStore()
    let summary = try StoreScene.import(try StoreScene.export(store).bytes, into: other)
    #expect(summary.topics == 1 && summary.batches == 3 && summary.records == 10 && summary.states == 3)
    let (before, after) = (try store.contents(), try other.contents())
    #expect(before.topics.map(\.extent) == after.topics.map(\.extent))
    #expect(before.topics.map(\.row.settings) == after.topics.map(\.row.settings))
    for kind in StoredState.Kind.allCases {
      #expect(try store.states(of: topic, kind) == other.states(of: topic, kind))
    }
    #expect(try StoreScene.records(other) == StoreScene.records(store))
    // It continues like the original.
    var change = TopicChange(topic)
    change.batches = try StoreScene.batches([["next"]], of: topic, from: 10, bytesBefore: 52)
    try other.commit([change])
  }

  @Test func anEmptyStoreIsAnExport() throws {
    let bytes = try StoreScene.export(MemoryStore()).bytes
    #expect(try kinds(bytes) == [5])
    #expect(try StoreScene.import(bytes, into: store) == StoreImport())
  }

  @Test func onlySomeTopics() throws {
    try StoreScene.fill(store, "other", id: 2)
    #expect(try kinds(StoreScene.export(store).bytes).count == 17)
    #expect(try kinds(StoreScene.export(store, topics: ["other"]).bytes) == [1, 2, 2, 2, 3, 3, 3, 4, 5])
    let error = #expect(throws: StoreError.self) { try StoreScene.export(store, topics: ["oders"]) }
    #expect(error?.message == "there is no topic oders in the store")
  }

  @Test func whatIsDamagedIsToldAndLeftOut() throws {
    store.damage(topic, batchAt: 0) { $0[50] ^= 1 }
    store.damage(topic, batchAt: 5) { $0[50] ^= 1 }
    store.damage(topic, .state(key: [99]))
    try StoreScene.fill(store, "lost", id: 2)
    store.damage(TopicID(rawValue: 2), .row(StoreError(.damaged, "no row")))
    let (bytes, findings) = try StoreScene.export(store)
    #expect(findings.map(\.problem.code) == ["row", "batch-checksum", "batch-checksum", "state"])
    let other = MemoryStore()
    try StoreScene.import(bytes, into: other)
    #expect(try StoreScene.findings(other).allSatisfy { !$0.isDamage })
    #expect(try StoreScene.records(other) == [3: "dd", 4: "ee"])
    // Their offsets aren't reused.
    let extent = try #require(try other.extent(of: topic))
    #expect(extent.firstOffset == 3 && extent.head == 10)
  }

  @Test func topicsThatAreThereAreRefusedOrReplaced() throws {
    let bytes = try StoreScene.export(store).bytes
    let other = MemoryStore()
    try StoreScene.fill(other, "first", id: 1)
    var change = TopicChange(TopicID(rawValue: 2))
    change.row = StoreScene.row("orders", epoch: 99)
    try other.commit([change])
    let before = try other.contents().topics
    let error = #expect(throws: StoreError.self) { try StoreScene.import(bytes, into: other) }
    #expect(error?.kind == .failed)
    #expect(error?.message == "there is a topic orders already; nothing was imported: see --replace")
    #expect(try other.contents().topics == before)

    try StoreScene.import(bytes, into: other, replacing: true)
    let topics = try other.contents().topics
    #expect(topics.map(\.row.name) == ["first", "orders"])
    #expect(topics[1].row.lineage == [.init(epoch: 1, end: 10)] && topics[1].extent.head == 10)
    #expect(try StoreScene.records(other, topics[1].id.rawValue).count == 10)
  }

  @Test("a stream that is cut off anywhere brings nothing")
  func cutOff() throws {
    let bytes = try StoreScene.export(store).bytes
    for length in 0..<bytes.count {
      let other = MemoryStore()
      let error = #expect(throws: StoreError.self) {
        try StoreScene.import(Array(bytes[..<length]), into: other)
      }
      #expect(error?.kind == (length < ExportFormat.preambleSize ? .notAStore : .damaged))
      #expect(try other.contents().topics.isEmpty)
      #expect(other.state.withLock { $0.prepared.isEmpty })
    }
    let error = #expect(throws: StoreError.self) { try StoreScene.import(bytes + [0], into: MemoryStore()) }
    #expect(error?.kind == .damaged)
  }

  @Test("every byte of a stream counts")
  func everyByte() throws {
    let bytes = try StoreScene.export(store).bytes
    let reserved = ExportFormat.magic.count + 2..<ExportFormat.preambleSize
    for position in bytes.indices {
      var bad = bytes
      bad[position] ^= 0x40
      let other = MemoryStore()
      if reserved.contains(position) {
        try StoreScene.import(bad, into: other)
        continue
      }
      #expect(throws: StoreError.self, "\(position)") { try StoreScene.import(bad, into: other) }
      #expect(try other.contents().topics.isEmpty)
    }
  }

  @Test func sectionsMayNotChangePlaces() throws {
    let bytes = try StoreScene.export(store).bytes
    // The two adjacent small states have the same length if their keys do.
    let other = MemoryStore()
    var change = TopicChange(topic)
    change.row = StoreScene.row("t")
    change.states = [
      .init(.cursor, key: [65], value: [1]), .init(.cursor, key: [66], value: [2]),
    ]
    try other.commit([change])
    var stream = try StoreScene.export(other).bytes
    let size = ExportFormat.sectionHeaderSize + 4 + ExportFormat.checksumSize
    let end = stream.count - (8 + 24 + 8) - (8 + 56 + 8)
    let first = Array(stream[(end - 2 * size)..<(end - size)])
    stream.replaceSubrange((end - 2 * size)..<(end - size), with: stream[(end - size)..<end])
    stream.replaceSubrange((end - size)..<end, with: first)
    #expect(stream != bytes)
    let error = #expect(throws: StoreError.self) { try StoreScene.import(stream, into: MemoryStore()) }
    #expect(error?.message.contains("its checksum is wrong") == true)
  }

  @Test("streams whose sections contradict each other bring nothing")
  func contradictions() throws {
    let good = try sections(StoreScene.export(store).bytes)
    #expect(good.count == 9)
    guard case .topicEnd(let totals) = good[7], case .batch(let batch) = good[1] else {
      Issue.record("another order")
      return
    }
    func with(_ change: (inout [ExportSection]) -> Void) -> [ExportSection] {
      var sections = good
      change(&sections)
      return sections
    }
    var other = totals
    other.extent.head = 9
    var fewer = totals
    fewer.batches = 2
    var twisted = batch
    twisted[40] += 1
    let wrong: [(String, [ExportSection])] = [
      ("begins within", with { $0.insert(good[0], at: 1) }),
      ("to no topic", with { $0.remove(at: 0) }),
      ("a state belongs to no topic", with { $0.insert(good[4], at: 8) }),
      ("ends that didn't begin", with { $0.insert(good[7], at: 8) }),
      ("ends within a topic", with { $0.remove(at: 7) }),
      ("something follows", with { $0.append($0[8]) }),
      ("its end is missing", with { $0.removeLast() }),
      ("another number of batches", with { $0.remove(at: 2) }),
      ("another number of batches", with { $0[7] = .topicEnd(fewer) }),
      ("other records", with { $0[7] = .topicEnd(other) }),
      ("it says that it has 4 records, and has 3", with { $0[1] = .batch(twisted) }),
      ("begins before 3", with { $0.insert($0[1], at: 2) }),
      ("is there twice", with { $0.insert(contentsOf: good[0...7], at: 8) }),
      ("another number of topics", with { $0[8] = .end(.init(topics: 2, batches: 3, states: 3)) }),
      ("isn't a topic name", with { $0[0] = .topic(StoreScene.row("a b")) }),
    ]
    for (message, sections) in wrong {
      let target = MemoryStore()
      let error = #expect(throws: StoreError.self) {
        try StoreScene.import(try stream(sections), into: target)
      }
      #expect(error?.kind == .damaged)
      #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
      #expect(try target.contents().topics.isEmpty)
    }
  }

  @Test func whatALaterVersionAddsIsLeftOutOrRefused() throws {
    let good = try sections(StoreScene.export(store).bytes)
    let target = MemoryStore()
    try StoreScene.import(try stream([.other(200)] + good), into: target)
    #expect(try target.contents().topics.count == 1)
    for sections: [ExportSection] in [[.other(6)] + good, [.other(0)] + good] {
      let error = #expect(throws: StoreError.self) {
        try StoreScene.import(try stream(sections), into: MemoryStore())
      }
      #expect(error?.kind == .newer)
    }
    var newer = try StoreScene.export(store).bytes
    newer[8] = 2
    let error = #expect(throws: StoreError.self) { try StoreScene.import(newer, into: MemoryStore()) }
    #expect(error?.message == "the export has version 2, and this software knows 1")
  }

  @Test func whatTheSinkAndTheSourceSayIsTold() throws {
    let full = StoreError(.full, "no room")
    var room = 300
    let error = #expect(throws: StoreError.self) {
      try StoreExport.run(store, report: { _ in }) {
        room -= $0.count
        return room < 0 ? full : nil
      }
    }
    #expect(error == full)
    let failed = #expect(throws: StoreError.self) {
      try StoreImport.run(into: store, replacing: false, from: ExportReader { _ in .failure(full) })
    }
    #expect(failed == full)
    #expect(throws: StoreError.self) {
      try StoreExport.run(store, progress: { _ in false }, report: { _ in }) { _ in nil }
    }
    let bytes = try StoreScene.export(store).bytes
    #expect(throws: StoreError.self) {
      try StoreImport.run(
        into: MemoryStore(), replacing: false, progress: { _ in false },
        from: ExportReader(StoreScene.source(bytes)))
    }
  }

  @Test func aLengthThatIsALieTakesNoMemory() throws {
    // A section that announces a gigabyte, without any of it.
    var bytes = ExportFormat.preamble + [2, 0, 0, 0, 0, 0, 0, 0x40]
    var most = 0
    let error = #expect(throws: StoreError.self) {
      var rest = bytes[...]
      var reader = ExportReader { target in
        most = max(most, target.count)
        let count = min(rest.count, target.count)
        target.copyBytes(from: rest.prefix(count))
        rest = rest.dropFirst(count)
        return .success(count)
      }
      _ = try reader.next()
    }
    #expect(error?.message.contains("the stream ends within it") == true)
    #expect(most < 1 << 20)
    bytes[bytes.count - 1] = 0xFF
    #expect(throws: StoreError.self) { try StoreScene.import(bytes, into: MemoryStore()) }
  }
}
