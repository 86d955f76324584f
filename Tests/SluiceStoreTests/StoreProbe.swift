import SluiceStore
import SluiceWire
import TestSupport

/// Passes any bytes to the decoders of disk and file contents.
enum StoreProbe: Probe {
  enum Target: String, CaseIterable, Sendable {
    /// A topic's row.
    case topicRows
    /// A stream, unchanged.
    case exports
    /// Sections with correct checksums: a kind, a `u16` length and a body each.
    case exportSections
    /// A batch of topic 1 at offset 0, with a corrected checksum.
    case storedBatches
  }

  static func run(_ target: Target, on input: [UInt8]) throws {
    switch target {
    case .topicRows: try row(input)
    case .exports: try export(input, piece: 7)
    case .exportSections: try sections(input)
    case .storedBatches: try batch(input)
    }
  }

  // MARK: Rows

  /// A decoded value must be the same after encoding and decoding it again.
  static func row(_ bytes: [UInt8]) throws {
    guard let row = try? withExactMemory(bytes, { try StoredTopic(decoding: $0) }) else { return }
    let encoded = row.encoded()
    guard try withExactMemory(encoded, { try StoredTopic(decoding: $0) }) == row else {
      throw ProbeViolation("\(row) isn't the same when it is read again")
    }
  }

  // MARK: Streams

  /// A store must be valid after accepting a stream, and export the same stream.
  static func export(_ bytes: [UInt8], piece: Int) throws {
    var rest = bytes[...]
    let store = MemoryStore()
    let source: ExportReader.Source = { target in
      let count = min(piece, rest.count, target.count)
      target.copyBytes(from: rest.prefix(count))
      rest = rest.dropFirst(count)
      return .success(count)
    }
    do {
      _ = try StoreImport.run(into: store, replacing: false, from: ExportReader(source))
    } catch {
      guard try store.contents().topics.isEmpty else {
        throw ProbeViolation("a stream that was refused has left something")
      }
      return
    }
    try check(store)
  }

  private static func check(_ store: MemoryStore) throws {
    var findings: [StoreFinding] = []
    _ = try StoreVerification.run(store) { findings.append($0) }
    if let damage = findings.first(where: { finding in
      switch finding.problem {
      // The stream contains the same values.
      case .bytesBefore: false
      default: finding.isDamage
      }
    }) {
      throw ProbeViolation("a stream was taken, and now \(damage)")
    }
    let first = try export(store)
    let other = MemoryStore()
    var rest = first[...]
    let reader = ExportReader { target in
      let count = min(rest.count, target.count)
      target.copyBytes(from: rest.prefix(count))
      rest = rest.dropFirst(count)
      return .success(count)
    }
    _ = try StoreImport.run(into: other, replacing: false, from: reader)
    guard try StoreScene.contents(export(other)) == StoreScene.contents(first) else {
      throw ProbeViolation("a stream isn't the same after another import")
    }
  }

  private static func export(_ store: MemoryStore) throws -> [UInt8] {
    var bytes: [UInt8] = []
    _ = try StoreExport.run(store, report: { _ in }) {
      bytes += $0
      return nil
    }
    return bytes
  }

  static func sections(_ bytes: [UInt8]) throws {
    var stream: [UInt8] = []
    var writer = try ExportWriter {
      stream += $0
      return nil
    }
    var rest = bytes[...]
    while let kind = rest.popFirst() {
      let length = Int(rest.popFirst() ?? 0) | Int(rest.popFirst() ?? 0) << 8
      let body = Array(rest.prefix(length))
      rest = rest.dropFirst(length)
      try withExactMemory(body) {
        _ = try? ExportSection(kind: kind, body: $0)
        try writer.write(kind: kind, body: $0)
      }
    }
    try export(stream, piece: .max)
  }

  // MARK: Batches

  /// A batch that verification accepts must be safe to iterate.
  static func batch(_ bytes: [UInt8]) throws {
    guard bytes.count >= 8 else { return }
    let topic = TopicID(rawValue: 1)
    let store = MemoryStore()
    let block = BatchBlock(firstOffset: 0, bytesBefore: 0)
    _ = [UInt8](repeating: 0, count: 4).withUnsafeBytes { block.append($0, count: 1, time: 0) }
    block.seal(for: topic)
    var change = TopicChange(topic)
    change.row = StoredTopic(name: "t", settings: TopicSettings(), epoch: 1)
    change.batches = [block]
    try store.commit([change])
    store.damage(topic, batchAt: 0) { $0 = BatchView.sealed(bytes, for: topic) }
    var isSpoilt = false
    _ = try StoreVerification.run(store) { if $0.batch == 0 { isSpoilt = true } }
    if !isSpoilt {
      try store.batches(of: topic, from: 0) { offset, bytes in
        guard let view = BatchView(bytes, of: topic, at: offset) else { return true }
        _ = view.firstOffset(atOrAfter: view.header.lastTime)
        return true
      }
    }
    _ = try StoreRepair.run(store, isDryRun: false, found: { _ in }, done: { _ in })
    var left: StoreFinding?
    _ = try StoreVerification.run(store) { if $0.isDamage { left = $0 } }
    if let left { throw ProbeViolation("after a repair, \(left)") }
  }
}
