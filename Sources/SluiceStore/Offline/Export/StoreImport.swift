import SluiceWire

/// Brings topics from a stream into a store: all of them, once the stream has been read to its end and found whole, or none.
public struct StoreImport: Hashable, Sendable {
  public var topics: UInt64 = 0
  public var batches: UInt64 = 0
  public var records: UInt64 = 0
  public var states: UInt64 = 0

  /// - Parameters:
  ///   - store: where the topics go.
  ///   - isReplacing: whether existing topics are replaced by those of the same name. Otherwise they are refused.
  ///   - progress: gets the number of bytes read so far, now and then; returns whether to continue.
  ///   - reader: has the stream.
  /// - Throws: ``StoreError``; the store has the topics that it had then.
  public static func run(
    into store: any LoadableStore, replacing isReplacing: Bool,
    progress: @escaping (UInt64) -> Bool = { _ in true }, from reader: consuming ExportReader
  ) throws(StoreError) -> StoreImport {
    var assembly = ImportAssembly(store, isReplacing: isReplacing, try store.inspection())
    do throws(StoreError) {
      while let section = try reader.next() {
        guard progress(reader.bytes) else { throw .stopped }
        try assembly.take(section)
      }
      return try assembly.finish()
    } catch {
      assembly.discard()
      throw error
    }
  }
}

/// Checks the sections of an export, and puts what they bring into a store.
struct ImportAssembly {
  /// A topic whose end hasn't come yet.
  private struct Current {
    var id: TopicID
    var row: StoredTopic
    var scan: TopicScan
    var states: UInt64 = 0
    var replaced: StoreInspection.Topic?
    /// For a compact topic: its imported marks.
    var marks: StoredNewest.Content?

    var isCompact: Bool { row.settings.compact == true }
  }

  /// As much is loaded at a time.
  private static let loadBytes = 4 << 20

  private let store: any LoadableStore
  private let isReplacing: Bool
  /// The existing topics.
  private let present: [String: StoreInspection.Topic]
  private var names: Set<String> = []
  private var prepared: [TopicID] = []
  private var complete: [LoadedTopic] = []
  private var current: Current?
  private var batches: [LoadedBatch] = []
  private var states: [StoredState] = []
  private var gathered = 0
  private var totals: ExportSection.Totals?
  private var summary = StoreImport()

  init(_ store: any LoadableStore, isReplacing: Bool, _ inspection: StoreInspection) {
    self.store = store
    self.isReplacing = isReplacing
    let topics = Dictionary(inspection.topics.map { ($0.id, $0) }) { $1 }
    present = inspection.owners.compactMapValues { topics[$0] }
  }

  mutating func take(_ section: ExportSection) throws(StoreError) {
    guard totals == nil else { throw damaged("something follows on its end") }
    switch section {
    case .topic(let row): try begin(row)
    case .batch(let value): try take(batch: value)
    case .state(let state): try take(state: state)
    case .topicEnd(let totals): try end(totals)
    case .end(let totals):
      guard current == nil else { throw damaged("it ends within a topic") }
      self.totals = totals
    case .other: break
    }
  }

  /// The stream has ended: the topics become part of the store.
  mutating func finish() throws(StoreError) -> StoreImport {
    guard let totals else { throw damaged("it is cut off: its end is missing") }
    guard
      totals
        == .init(topics: summary.topics, batches: summary.batches, states: summary.states)
    else { throw damaged("it has another number of topics, batches or states than it says in its end") }
    try store.adopt(complete)
    prepared = []
    return summary
  }

  /// Throws away what was loaded. Topics that can't be removed now are removed when the store is opened next.
  func discard() {
    for topic in prepared { try? store.discard(topic) }
  }

  private func damaged(_ why: String) -> StoreError {
    StoreError(.damaged, "the export can't be used: \(why); nothing was imported")
  }

  // MARK: A topic

  private mutating func begin(_ row: StoredTopic) throws(StoreError) {
    guard current == nil else { throw damaged("topic \(row.name) begins within another") }
    if let fault = StoredTopic.fault(inName: row.name) { throw damaged(fault) }
    guard names.insert(row.name).inserted else { throw damaged("topic \(row.name) is there twice") }
    let replaced = present[row.name]
    guard replaced == nil || isReplacing else {
      throw StoreError(.failed, "there is a topic \(row.name) already; nothing was imported: see --replace")
    }
    let id = try store.prepareTopic()
    prepared.append(id)
    current = Current(id: id, row: row, scan: TopicScan(id, name: row.name, extent: nil), replaced: replaced)
  }

  private mutating func take(batch value: [UInt8]) throws(StoreError) {
    guard var current = current.take() else { throw damaged("a batch belongs to no topic") }
    let (header, problem) = unsafe value.withUnsafeBytes { bytes in
      let header = unsafe BatchHeader(at: bytes.baseAddress!)
      return unsafe (
        header, BatchCheck.contents(header, UnsafeRawBufferPointer(rebasing: bytes[BatchHeader.size...]))
      )
    }
    // Gaps are what they are.
    if let what = current.scan.take(header, problem, at: header.firstOffset, size: value.count, { _ in }) {
      throw damaged("topic \(current.row.name), batch at offset \(header.firstOffset): \(what)")
    }
    if current.isCompact {
      add(newestOf: value, header, besides: current.marks)
    } else {
      batches.append(
        LoadedBatch(firstOffset: header.firstOffset, value: BatchView.sealed(value, for: current.id)))
    }
    gathered += value.count
    if gathered >= Self.loadBytes { try load(into: current.id) }
    self.current = current
  }

  private mutating func take(state: StoredState) throws(StoreError) {
    guard var current = current.take() else { throw damaged("a state belongs to no topic") }
    if let fault = RawState(key: [state.kind.rawValue] + state.key, value: state.value).fault {
      throw damaged("topic \(current.row.name), a state: \(fault)")
    }
    current.states += 1
    let newest =
      current.isCompact && state.kind == .newest
      ? try StoredNewest.decode(key: state.key, value: state.value) : nil
    if case .marks? = newest { current.marks = newest } else { states.append(state) }
    gathered += state.key.count + state.value.count + 64
    if gathered >= Self.loadBytes { try load(into: current.id) }
    self.current = current
  }

  /// Takes the records of a compact topic's batch out of it: those of a backup have gaps between them, which batches of a store don't have.
  private mutating func add(
    newestOf value: [UInt8], _ header: BatchHeader, besides marks: StoredNewest.Content?
  ) {
    var first: UInt64 = 0
    if case .marks(let carriedBefore, _, _)? = marks { first = carriedBefore }
    unsafe value.withUnsafeBytes { value in
      _ = unsafe StoredNewest.forEachRecord(
        in: UnsafeRawBufferPointer(rebasing: value[BatchHeader.size...]), at: header.firstOffset,
        time: header.firstTime, from: first
      ) { item, offset, time in
        let change = unsafe StoredNewest.change(item, at: offset, time: time)
        states.append(StoredState(.newest, key: change.key, value: change.value ?? []))
      }
    }
  }

  /// Says of a compact topic that each of its records is by itself.
  ///
  /// - Returns: the topic's extent, which has no batches.
  private mutating func carryAll(_ marks: StoredNewest.Content?, _ extent: StoredExtent) -> StoredExtent {
    var (kept, deletions) = (0 as UInt64, extent.head)
    if case .marks(_, let keptFrom, let deletionsFrom)? = marks {
      (kept, deletions) = (keptFrom, deletionsFrom)
    }
    let change = StoredNewest.change(carriedBefore: extent.head, keptFrom: kept, deletionsFrom: deletions)
    states.append(StoredState(.newest, key: change.key, value: change.value ?? []))
    var extent = extent
    extent.firstOffset = extent.head
    extent.bytesBefore = extent.bytesThrough
    return extent
  }

  private mutating func load(into topic: TopicID) throws(StoreError) {
    if batches.isEmpty, states.isEmpty { return }
    try store.load(batches, states, into: topic)
    batches = []
    states = []
    gathered = 0
  }

  private mutating func end(_ totals: ExportSection.TopicTotals) throws(StoreError) {
    guard let current = current.take() else { throw damaged("a topic ends that didn't begin") }
    guard totals.batches == current.scan.batches, totals.states == current.states else {
      throw damaged(
        "topic \(current.row.name) has another number of batches or states than it says in its end")
    }
    guard current.scan.mended(totals.extent) == totals.extent else {
      throw damaged("topic \(current.row.name) has other records than it says in its end")
    }
    let extent = current.isCompact ? carryAll(current.marks, totals.extent) : totals.extent
    try load(into: current.id)
    complete.append(
      LoadedTopic(
        id: current.id, row: continued(current, upTo: totals.extent.head), extent: extent,
        replaced: current.replaced?.id))
    summary.topics += 1
    summary.batches += current.scan.batches
    summary.records += current.scan.records
    summary.states += current.states
  }

  /// The row with a new epoch: clients may have later records of the exported epoch than the export, and continue at its end.
  private func continued(_ topic: Current, upTo head: UInt64) -> StoredTopic {
    var row = topic.row
    if let replaced = try? topic.replaced?.row.get() { row.adoptEpochs(of: replaced, head: head) }
    row.begin(epoch: .random(in: 1 ... .max), continuingUpTo: head)
    return row
  }
}
