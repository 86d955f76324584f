import SluiceWire
import TestSupport

@testable import SluiceStore

/// Fills stores, and reads their contents.
enum StoreScene {
  static func row(_ name: String, epoch: UInt64 = 1) -> StoredTopic {
    var settings = TopicSettings(replayRecords: 1_000)
    settings.storage = .durable
    return StoredTopic(name: name, settings: settings, epoch: epoch)
  }

  /// Sealed consecutive batches, one for each list of payloads, a second apart.
  static func batches(
    _ payloads: [[String]], of topic: TopicID, from offset: UInt64 = 0, bytesBefore: UInt64 = 0
  ) throws -> [BatchBlock] {
    var blocks: [BatchBlock] = []
    for (index, payloads) in payloads.enumerated() {
      let block = BatchBlock(
        firstOffset: blocks.last?.endOffset ?? offset, bytesBefore: blocks.last?.bytesThrough ?? bytesBefore)
      var items: [UInt8] = []
      for payload in payloads { items += item(Array(payload.utf8)) }
      let taken = items.withUnsafeBytes {
        block.append($0, count: payloads.count, time: 1_000 * Int64(index + 1))
      }
      guard taken == (items.count, payloads.count) else { throw TestFailure("a block is too small") }
      block.seal(for: topic)
      blocks.append(block)
    }
    return blocks
  }

  static func item(_ payload: [UInt8]) -> [UInt8] {
    withUnsafeBytes(of: RecordLayout.word(.plain, length: payload.count).littleEndian) { Array($0) } + payload
  }

  /// Creates a topic with batches of three, two and five records, offsets 0 to 9, and a state of each kind.
  static func fill(_ store: any TopicStore, _ name: String = "orders", id: UInt64 = 1) throws {
    let id = TopicID(rawValue: id)
    var change = TopicChange(id)
    change.row = row(name, epoch: id.rawValue)
    change.batches = try batches(
      [["a", "b", "c"], ["dd", "ee"], ["1", "2", "3", "4", "5"]], of: id)
    change.states = [
      .init(.producer, key: [1, 2, 3, 4, 5, 6, 7, 8], value: [9]),
      .init(.cursor, key: Array("billing".utf8), value: [1, 2]),
      .init(.group, key: Array("workers".utf8), value: []),
    ]
    try store.commit([change])
  }

  /// Topics with random names, batches, states and terminal events.
  static func fill(_ store: any TopicStore, _ random: inout SeededRandom) throws {
    for number in 1...UInt64.random(in: 1...4, using: &random) {
      var change = TopicChange(TopicID(rawValue: number))
      var row = row("topic.\(number)", epoch: .random(in: 1 ... .max, using: &random))
      if .random(using: &random) { row.lineage = [.init(epoch: 4, end: 5)] }
      row.ending = [nil, .finished, .failure(code: .producerFailure, message: "over")].randomElement(
        using: &random)!
      change.row = row
      let payloads = (0..<Int.random(in: 0...5, using: &random)).map { _ in
        (0..<Int.random(in: 1...9, using: &random)).map { _ in
          String(repeating: "x", count: .random(in: 0...200, using: &random))
        }
      }
      change.batches = try batches(
        payloads, of: change.topic, from: .random(in: 0...1_000, using: &random),
        bytesBefore: .random(in: 0...1_000, using: &random))
      for kind in StoredState.Kind.allCases {
        for _ in 0..<Int.random(in: 0...3, using: &random) {
          if kind == .newest {
            change.states.append(newest(at: .random(in: 0...1_000, using: &random), "key \(number)"))
            continue
          }
          let key =
            kind == .producer
            ? random.bytes(8)
            : random.bytes(.random(in: 1...255, using: &random)).map { UInt8(97) + $0 % 26 }
          change.states.append(
            .init(kind, key: key, value: random.bytes(.random(in: 0...100, using: &random))))
        }
      }
      try store.commit([change])
    }
  }

  /// A single record of a compacted topic.
  static func newest(at offset: UInt64, _ key: String, _ payload: String = "x") -> TopicChange.State {
    var batch = BatchBuilder()
    try? Array(key.utf8).withUnsafeBytes { key in
      try Array(payload.utf8).withUnsafeBytes { try batch.append(key: key, headers: [], payload: $0) }
    }
    return batch.bytes.withUnsafeBytes { StoredNewest.change($0, at: offset, time: 5) }
  }

  // MARK: Looking

  static func findings(_ store: any RepairableStore) throws -> [StoreFinding] {
    var findings: [StoreFinding] = []
    _ = try StoreVerification.run(store) { findings.append($0) }
    return findings
  }

  /// The readable payloads of a topic, by offset.
  static func records(_ store: any TopicStore, _ topic: UInt64 = 1) throws -> [UInt64: String] {
    let topic = TopicID(rawValue: topic)
    var records: [UInt64: String] = [:]
    try store.batches(of: topic, from: 0) { offset, bytes in
      guard let batch = BatchView(bytes, of: topic, at: offset) else { return true }
      var iterator = BatchIterator(batch.items, time: 0)
      var offset = offset
      while let record = try? iterator.next() {
        records[offset] = String(decoding: record.body, as: UTF8.self)
        offset += 1
      }
      return true
    }
    return records
  }

  /// The store as a stream, and the damage found.
  static func export(
    _ store: any RepairableStore, topics: [String]? = nil
  ) throws -> (bytes: [UInt8], findings: [StoreFinding]) {
    var bytes: [UInt8] = []
    var findings: [StoreFinding] = []
    _ = try StoreExport.run(store, topics: topics, report: { findings.append($0) }) {
      bytes += $0
      return nil
    }
    return (bytes, findings)
  }

  @discardableResult
  static func `import`(
    _ bytes: [UInt8], into store: any LoadableStore, replacing: Bool = false, piece: Int = .max
  ) throws -> StoreImport {
    try StoreImport.run(into: store, replacing: replacing, from: ExportReader(source(bytes, piece: piece)))
  }

  /// The contents of a stream without the topics' epochs: an import starts its own epochs.
  static func contents(_ bytes: [UInt8]) throws -> [ExportSection] {
    var contents: [ExportSection] = []
    var reader = ExportReader(source(bytes))
    while var section = try reader.next() {
      if case .topic(var row) = section {
        (row.epoch, row.lineage) = (0, [])
        section = .topic(row)
      }
      contents.append(section)
    }
    return contents
  }

  /// Returns the bytes in pieces of at most `piece`.
  static func source(_ bytes: [UInt8], piece: Int = .max) -> ExportReader.Source {
    var rest = bytes[...]
    return { target in
      let count = min(piece, rest.count, target.count)
      target.copyBytes(from: rest.prefix(count))
      rest = rest.dropFirst(count)
      return .success(count)
    }
  }
}
