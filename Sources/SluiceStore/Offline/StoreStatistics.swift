/// The content of a store, by its rows and the headers of its batches.
public struct StoreStatistics: Sendable {
  public struct Topic: Sendable {
    public var id: TopicID
    /// Nil when the row can't be read.
    public var row: StoredTopic?
    public var extent: StoredExtent
    public var batches: UInt64 = 0
    public var records: UInt64 = 0
    /// Bytes of the records; ``stored`` counts headers and time marks as well.
    public var bytes: UInt64 = 0
    public var stored: UInt64 = 0
    /// The time of the oldest record, in milliseconds since 1970; nil when there is none.
    public var firstTime: Int64?
    public var lastTime: Int64?
    public var producers: UInt64 = 0
    public var cursors: UInt64 = 0
    public var groups: UInt64 = 0
    /// Records of a compact topic that are stored by themselves: they aren't counted in ``records``, and neither are their bytes in ``bytes``.
    public var carried: UInt64 = 0
  }

  /// In the order of their numbers.
  public var topics: [Topic]
  public var size: StoreSize
  /// Whether the store was closed after its last use.
  public var wasClosed: Bool

  /// Reads all headers: a page a batch.
  ///
  /// - Parameters:
  ///   - store: the store.
  ///   - progress: as with ``StoreVerification``.
  public init(
    of store: any RepairableStore, progress: @escaping (UInt64) -> Bool = { _ in true }
  ) throws(StoreError) {
    let inspection = try store.inspection()
    var progress = OfflineProgress(progress)
    topics = []
    size = inspection.size
    wasClosed = inspection.wasClosed
    for found in inspection.topics {
      var topic = Topic(id: found.id, row: try? found.row.get(), extent: found.extent ?? StoredExtent())
      try unsafe store.forEachBatch(of: found.id, &progress) { _, bytes in unsafe topic.add(bytes) }
      try store.rawStates(of: found.id) { raw in
        topic.add(raw)
        return true
      }
      topics.append(topic)
    }
  }

  public var records: UInt64 { topics.reduce(0) { $0 &+ $1.records } }
  public var bytes: UInt64 { topics.reduce(0) { $0 &+ $1.bytes } }
}

extension StoreStatistics.Topic {
  fileprivate mutating func add(_ bytes: UnsafeRawBufferPointer) {
    batches += 1
    stored += UInt64(bytes.count)
    // Not verified: that is StoreVerification's work.
    guard bytes.count > BatchHeader.size, let header = unsafe BatchHeader(bytes) else { return }
    records &+= UInt64(header.records)
    self.bytes &+= UInt64(header.recordBytes)
    if firstTime == nil { firstTime = header.firstTime }
    lastTime = header.lastTime
  }

  fileprivate mutating func add(_ raw: RawState) {
    switch raw.state?.kind {
    case .producer: producers += 1
    case .cursor: cursors += 1
    case .group: groups += 1
    case .newest:
      stored += UInt64(raw.value.count)
      if raw.key.count == 9 { carried += 1 }
    case nil: break
    }
  }
}
