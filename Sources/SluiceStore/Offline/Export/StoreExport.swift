import SluiceWire

/// Writes topics of a store to a stream from which they can be brought into another.
///
/// Damaged parts are omitted and reported.
public struct StoreExport: Hashable, Sendable {
  public var topics: UInt64 = 0
  public var batches: UInt64 = 0
  public var records: UInt64 = 0
  public var states: UInt64 = 0
  /// Findings of damage in what was to be written.
  public var damaged: UInt64 = 0

  /// Writes all topics, or those with these names, in the order of their numbers.
  ///
  /// - Parameters:
  ///   - store: the store to export.
  ///   - names: the topics that are wanted; nil for all.
  ///   - progress: as with ``StoreVerification``.
  ///   - report: gets the damage.
  ///   - sink: takes the stream, piece by piece.
  /// - Throws: ``StoreError`` when there is no such topic, the store can't be read, or the sink failed. The stream isn't whole then, which
  ///   its reader will notice.
  public static func run(
    _ store: any RepairableStore, topics names: [String]? = nil,
    progress: @escaping (UInt64) -> Bool = { _ in true }, report: (StoreFinding) -> Void,
    to sink: @escaping ExportWriter.Sink
  ) throws(StoreError) -> StoreExport {
    let inspection = try store.inspection()
    let wanted = names.map { Set($0) }
    for name in names ?? [] where !inspection.topics.contains(where: { $0.name == name }) {
      throw StoreError(.failed, "there is no topic \(name) in the store")
    }
    var summary = StoreExport()
    if wanted == nil {
      for finding in inspection.findings where finding.isOfRow {
        summary.damaged += 1
        report(finding)
      }
    }
    var progress = OfflineProgress(progress)
    var writer = try unsafe ExportWriter(sink)
    let owners = inspection.owners
    for topic in inspection.topics {
      guard let row = try? topic.row.get(), wanted?.contains(row.name) ?? true, owners[row.name] == topic.id
      else { continue }
      try summary.write(topic, row, of: store, to: &writer, &progress, report)
    }
    try writer.write(.end(.init(topics: summary.topics, batches: summary.batches, states: summary.states)))
    return summary
  }

  private mutating func write(
    _ topic: StoreInspection.Topic, _ row: StoredTopic, of store: any RepairableStore,
    to writer: inout ExportWriter, _ progress: inout OfflineProgress, _ report: (StoreFinding) -> Void
  ) throws(StoreError) {
    try writer.write(.topic(row))
    var scan = TopicScan(topic.id, name: row.name, extent: topic.extent)
    var totals = ExportSection.TopicTotals(batches: 0, states: 0, extent: StoredExtent())
    var damaged: UInt64 = 0
    func note(_ finding: StoreFinding) {
      guard finding.isDamage else { return }
      damaged += 1
      report(finding)
    }
    // Ahead of the batches, so that records come in the order of their offsets.
    try write(of: topic, in: store, { $0 == .newest }, to: &writer, &totals, note)
    try unsafe store.forEachBatch(of: topic.id, &progress) { offset, bytes throws(StoreError) in
      guard unsafe scan.take(bytes, at: offset, note) else { return }
      totals.batches += 1
      try unsafe writer.write(batch: bytes)
    }
    scan.finish(note)
    totals.extent = scan.mended
    try write(of: topic, in: store, { $0 != .newest }, to: &writer, &totals, note)
    try writer.write(.topicEnd(totals))
    topics += 1
    batches += totals.batches
    records += scan.records
    states += totals.states
    self.damaged += damaged
  }

  /// Writes a topic's states of some kinds.
  ///
  /// - Parameter isWanted: gets the kind; nil for a state of unknown kind.
  private func write(
    of topic: StoreInspection.Topic, in store: any RepairableStore, _ isWanted: (StoredState.Kind?) -> Bool,
    to writer: inout ExportWriter, _ totals: inout ExportSection.TopicTotals, _ note: (StoreFinding) -> Void
  ) throws(StoreError) {
    var fault: StoreError?
    try store.rawStates(of: topic.id) { raw in
      guard isWanted(raw.key.first.flatMap(StoredState.Kind.init)) else { return true }
      if let fault = raw.fault {
        note(StoreFinding(.state(key: raw.key, fault), topic: topic.id, name: topic.name))
      }
      guard raw.fault == nil, let state = raw.state else { return true }
      totals.states += 1
      do throws(StoreError) {
        try writer.write(.state(state))
      } catch {
        fault = error
      }
      return fault == nil
    }
    if let fault { throw fault }
  }
}

extension StoreFinding {
  /// Whether it keeps a topic from being exported.
  fileprivate var isOfRow: Bool {
    switch problem {
    case .row, .rowIsNewer, .strays: true
    default: false
    }
  }
}

/// Writes an export, section by section.
@safe
public struct ExportWriter {
  /// Takes bytes, all of them, and returns why it can't.
  public typealias Sink = (UnsafeRawBufferPointer) -> StoreError?

  private let sink: Sink
  private var sections: UInt64 = 0
  private var writer = ByteWriter()

  /// Writes the preamble.
  public init(_ sink: @escaping Sink) throws(StoreError) {
    unsafe self.sink = unsafe sink
    let fault = unsafe ExportFormat.preamble.withUnsafeBytes { unsafe sink($0) }
    if let fault { throw fault }
  }

  public mutating func write(_ section: ExportSection) throws(StoreError) {
    begin()
    let kind = section.encodeBody(into: &writer)
    try end(kind)
  }

  /// Writes a section of any kind, as its body is.
  public mutating func write(kind: UInt8, body: UnsafeRawBufferPointer) throws(StoreError) {
    begin()
    unsafe writer.raw(body)
    try end(kind)
  }

  /// Writes a batch that lies in a store.
  mutating func write(batch value: UnsafeRawBufferPointer) throws(StoreError) {
    begin()
    unsafe writer.raw(UnsafeRawBufferPointer(rebasing: value[ExportSection.batchChecksumSize...]))
    try end(ExportFormat.Kind.batch.rawValue)
  }

  private mutating func begin() {
    writer.bytes.removeAll(keepingCapacity: true)
    // Unknown fields are filled in later.
    writer.bytes.append(contentsOf: repeatElement(0, count: ExportFormat.sectionHeaderSize))
  }

  private mutating func end(_ kind: UInt8) throws(StoreError) {
    let length = UInt32(clamping: writer.bytes.count - ExportFormat.sectionHeaderSize)
    let number = sections
    let checksum = unsafe writer.bytes.withUnsafeMutableBytes { bytes in
      unsafe bytes[0] = kind
      unsafe bytes.storeBytes(of: length.littleEndian, toByteOffset: 4, as: UInt32.self)
      return unsafe ExportFormat.checksum(UnsafeRawBufferPointer(bytes), section: number)
    }
    writer.integer(checksum)
    sections += 1
    let fault = unsafe writer.bytes.withUnsafeBytes { unsafe sink($0) }
    if let fault { throw fault }
  }
}
