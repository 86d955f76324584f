import SluiceStore

/// The state of a shard's topics as its owner keeps it, now and after the commits in progress.
struct ShardTopics {
  private var table: [TopicID: EngineTopic]
  /// The number of the next topic to be created.
  private(set) var next: TopicID

  init(_ table: [TopicID: EngineTopic], next: TopicID) {
    self.table = table
    self.next = next
  }

  subscript(id: TopicID) -> EngineTopic? {
    get { table[id] }
    _modify { yield &table[id] }
  }

  var ids: Dictionary<TopicID, EngineTopic>.Keys { table.keys }

  /// The stored topics.
  var contents: StoreContents {
    let stored = table.filter(\.value.isStored).map {
      StoreContents.Topic(id: $0, row: $1.row, extent: $1.extent)
    }
    return StoreContents(topics: stored.sorted { $0.id < $1.id }, nextTopic: next, wasClosed: false)
  }

  // MARK: Commits in progress

  /// The topic's extent after a change that follows all commits in progress, without its truncation. Nil after a deletion.
  ///
  /// - Parameter stream: for messages.
  /// - Throws: ``StoreError/Kind/invalid``.
  func extent(after change: TopicChange, in stream: String) throws(StoreError) -> StoredExtent? {
    if change.isDeletion { return nil }
    let known = table[change.topic]
    guard known.map({ !$0.isDeleting }) ?? (change.row != nil) else {
      throw StoreError(
        .invalid, "topic \(change.topic.rawValue) doesn't exist, and the change has no row for it")
    }
    if let violation = change.states.lazy.compactMap(\.violation).first { throw violation }
    var extent = known?.projected ?? StoredExtent()
    for batch in change.batches { try extent.append(batch, in: " in \(stream)") }
    return extent
  }

  /// Applies a change in progress.
  ///
  /// - Parameter extent: see ``extent(after:in:)``.
  mutating func project(_ change: TopicChange, _ extent: StoredExtent?) {
    guard let extent else {
      table[change.topic]?.isDeleting = true
      return
    }
    if table[change.topic] == nil, let row = change.row { table[change.topic] = EngineTopic(row: row) }
    table[change.topic]?.projected = extent
    for batch in change.batches {
      table[change.topic]?.index.append(.init(header: unsafe BatchHeader(batch.value)!, sequence: 0))
    }
  }

  /// Notes that a commit was sent.
  mutating func sent(_ pending: PendingCommit) {
    for (change, extent) in zip(pending.changes, pending.sentExtents) {
      guard let extent else { continue }
      table[change.topic]?.sentBeginning = .init(
        firstOffset: extent.firstOffset, bytesBefore: extent.bytesBefore)
    }
    for (change, sequence) in zip(pending.changes, pending.firstSequences) {
      guard let first = change.batches.first, let last = change.batches.last else { continue }
      table[change.topic]?.index.place(first.firstOffset..<last.endOffset, at: sequence)
    }
  }

  // MARK: Their outcomes

  /// Applies a stored change.
  ///
  /// - Parameters:
  ///   - extent: the topic's extent after it; nil for a deletion.
  ///   - sequence: the sequence of the change's first message.
  mutating func take(_ change: TopicChange, _ extent: StoredExtent?, at sequence: UInt64) {
    next = max(next, TopicID(rawValue: change.topic.rawValue + 1))
    if let extent {
      table[change.topic]?.take(change, extent, at: sequence)
    } else {
      table[change.topic] = nil
    }
  }

  /// Handles that none of the commits sent is stored: they are sent again.
  mutating func unsent(_ commits: [PendingCommit]) {
    for change in commits.lazy.flatMap(\.changes) { table[change.topic]?.forgetSent() }
  }

  /// Discards failed commits, when no others are in progress.
  mutating func failed(_ commits: [PendingCommit]) {
    for change in commits.lazy.flatMap(\.changes) {
      if table[change.topic]?.isStored == true {
        table[change.topic]?.forgetProjection()
      } else {
        table[change.topic] = nil
      }
    }
  }
}
