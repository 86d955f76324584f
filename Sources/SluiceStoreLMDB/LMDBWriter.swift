import SluiceStore

/// Makes the changes of one commit.
struct LMDBWriter {
  /// Batches and states that are removed at a time, and the bytes after which it is enough.
  private static let sliceCount = 256
  private static let sliceBytes = 256 << 20

  let transaction: LMDBTransaction
  let tables: LMDBTables
  private var nextTopic: UInt64
  private var isNextTopicChanged = false
  /// The largest number of a topic that has batches.
  private var lastTopic: TopicID?

  init(_ transaction: LMDBTransaction, _ tables: LMDBTables) throws(StoreError) {
    self.transaction = transaction
    self.tables = tables
    nextTopic = try transaction.number(tables.meta, .nextTopic) ?? 1
    lastTopic = try unsafe LMDBCursor(tables.batches, in: transaction).last().flatMap(BatchKey.topic)
  }

  mutating func apply(_ change: TopicChange) throws(StoreError) {
    let topic = change.topic
    if topic.rawValue >= nextTopic {
      nextTopic = topic.rawValue + 1
      isNextTopicChanged = true
    }
    if change.isDeletion {
      let isThere = try unsafe transaction.get(tables.topics, TopicKey(topic)) != nil
      return isThere ? try tables.delete(topic, in: transaction) : ()
    }
    var entry = try self.entry(of: change)
    try append(change.batches, to: topic, &entry.extent)
    for state in change.states { try apply(state, of: topic) }
    if let offset = change.truncateBefore {
      try truncate(topic, &entry.extent, before: offset, atLeast: 2 * change.batches.count)
    }
    let bytes = try unsafe transaction.reserve(tables.topics, TopicKey(topic), count: entry.count)
    unsafe entry.write(to: bytes, for: topic)
  }

  private func entry(of change: TopicChange) throws(StoreError) -> TopicEntry {
    let topic = change.topic
    if let bytes = try unsafe transaction.get(tables.topics, TopicKey(topic)) {
      guard var entry = unsafe TopicEntry(bytes, of: topic) else {
        throw StoreError(.damaged, "\(transaction.path) is damaged: topic \(topic.rawValue) can't be read")
      }
      if let row = change.row { entry.row = row.encoded() }
      return entry
    }
    guard let row = change.row else {
      throw StoreError(
        .invalid, "topic \(topic.rawValue) isn't in \(transaction.path), and the change has no row for it")
    }
    guard try unsafe transaction.get(tables.garbage, TopicKey(topic)) == nil else {
      throw StoreError(.invalid, "topic \(topic.rawValue) was deleted from \(transaction.path) before")
    }
    return TopicEntry(row)
  }

  private mutating func append(
    _ batches: [BatchBlock], to topic: TopicID, _ extent: inout StoredExtent
  ) throws(StoreError) {
    for batch in batches {
      try extent.append(batch, in: " in \(transaction.path)")
      let isLast = lastTopic.map { topic >= $0 } ?? true
      try unsafe transaction.put(
        tables.batches, BatchKey(topic, batch.firstOffset), batch.value, isLast ? .last : .new)
      if isLast { lastTopic = topic }
    }
  }

  private func apply(_ state: TopicChange.State, of topic: TopicID) throws(StoreError) {
    if let violation = state.violation { throw violation }
    let key = StateKey(topic, state.kind, state.key)
    guard let value = state.value else { return try transaction.delete(tables.states, key) }
    try transaction.put(tables.states, key, value)
  }

  private func truncate(
    _ topic: TopicID, _ extent: inout StoredExtent, before offset: UInt64, atLeast count: Int
  ) throws(StoreError) {
    guard offset > extent.firstOffset, extent.firstOffset < extent.head else { return }
    let cursor = try LMDBCursor(tables.batches, in: transaction)
    // A batch can go when the next one begins at the offset or before.
    var dropped: [UInt64] = []
    var bytes = 0
    var next = try cursor.seek(topic, 0)
    while let first = next {
      if dropped.count >= max(count, Self.sliceCount) || bytes >= Self.sliceBytes { break }
      let size = try unsafe cursor.value().count
      next = try cursor.next(of: topic)
      guard next ?? extent.head <= offset else {
        next = first
        break
      }
      dropped.append(first)
      bytes += size
    }
    guard !dropped.isEmpty else { return }
    for offset in dropped { try transaction.delete(tables.batches, BatchKey(topic, offset)) }
    extent.firstOffset = next ?? extent.head
    extent.bytesBefore = extent.bytesThrough
    if let next, let bytes = try unsafe transaction.get(tables.batches, BatchKey(topic, next)),
      let header = unsafe BatchHeader(bytes)
    {
      extent.bytesBefore = min(header.bytesBefore, extent.bytesThrough)
    }
  }

  func finish(isMarkedOpen: Bool) throws(StoreError) {
    if isNextTopicChanged { try transaction.put(number: nextTopic, tables.meta, .nextTopic) }
    if !isMarkedOpen { try transaction.put(number: UInt8(0), tables.meta, .closed) }
  }

  /// Removes a slice of what deleted topics have left. Returns whether there is more.
  func reclaim() throws(StoreError) -> Bool {
    let garbage = try LMDBCursor(tables.garbage, in: transaction)
    guard let key = try unsafe garbage.seek(TopicKey(TopicID(rawValue: 0))),
      let topic = unsafe TopicKey.topic(key)
    else { return false }
    if try removeSlice(of: topic) { return true }
    try transaction.delete(tables.garbage, TopicKey(topic))
    return try unsafe garbage.last() != nil
  }

  /// Returns whether the topic may have more.
  private func removeSlice(of topic: TopicID) throws(StoreError) -> Bool {
    var left = Self.sliceCount
    var bytes = 0
    let batches = try LMDBCursor(tables.batches, in: transaction)
    while left > 0, bytes < Self.sliceBytes {
      guard let offset = try batches.seek(topic, 0) else { break }
      unsafe bytes += try batches.value().count
      try transaction.delete(tables.batches, BatchKey(topic, offset))
      left -= 1
    }
    let states = try LMDBCursor(tables.states, in: transaction)
    while left > 0, bytes < Self.sliceBytes {
      guard let key = try unsafe states.seek(StateKey(topic, nil)), unsafe StateKey.topic(key) == topic else {
        return false
      }
      try unsafe transaction.delete(tables.states, Array(key))
      left -= 1
    }
    return true
  }
}

extension LMDBTables {
  /// Deletes a topic. Its content is removed later.
  func delete(_ topic: TopicID, in transaction: LMDBTransaction) throws(StoreError) {
    try transaction.delete(topics, TopicKey(topic))
    try transaction.put(garbage, TopicKey(topic), [])
  }
}
