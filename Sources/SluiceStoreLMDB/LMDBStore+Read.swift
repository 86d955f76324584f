import CLMDB
import SluiceStore

extension LMDBStore {
  /// Has something read from what was committed last, which takes a short time.
  func read<Result>(_ body: (LMDBReader) throws(StoreError) -> Result) throws(StoreError) -> Result {
    if let snapshot { return try body(snapshot) }
    return try use { environment throws(StoreError) in
      guard let reader = try environment.reader() else { return nil }
      defer { environment.giveBack(reader) }
      return try body(reader)
    }
  }

  public func contents() throws(StoreError) -> StoreContents {
    try read { reader throws(StoreError) in
      var contents = StoreContents(wasClosed: wasClosed)
      let next: UInt64? = try reader.transaction.number(reader.tables.meta, .nextTopic)
      contents.nextTopic = TopicID(rawValue: next ?? 1)
      try unsafe reader.transaction.forEach(reader.tables.topics, from: TopicKey(TopicID(rawValue: 0))) {
        key, value throws(StoreError) in
        unsafe contents.topics.append(try topic(key, value))
        return true
      }
      return contents
    }
  }

  private func topic(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
  ) throws(StoreError) -> StoreContents.Topic {
    guard let id = unsafe TopicKey.topic(key), let extent = unsafe TopicEntry.extent(value, of: id) else {
      throw StoreError(
        .damaged, "\(directory.data) is damaged: a topic can't be read; sluice store repair saves its records"
      )
    }
    let row = unsafe UnsafeRawBufferPointer(rebasing: value[TopicEntry.rowPosition...])
    do throws(StoreError) {
      return unsafe StoreContents.Topic(id: id, row: try StoredTopic(decoding: row), extent: extent)
    } catch {
      throw StoreError(error.kind, "topic \(id.rawValue) in \(directory.data): \(error.message)")
    }
  }

  public func states(of topic: TopicID, _ kind: StoredState.Kind) throws(StoreError) -> [StoredState] {
    try read { reader throws(StoreError) in
      // The remains of a deleted topic count as removed.
      guard try extent(of: topic, reader) != nil else { return [] }
      var states: [StoredState] = []
      try unsafe reader.transaction.forEach(reader.tables.states, from: StateKey(topic, kind)) { key, value in
        guard let key = unsafe StateKey.key(key, of: topic, kind) else { return false }
        unsafe states.append(StoredState(kind, key: key, value: Array(value)))
        return true
      }
      return states
    }
  }

  public func extent(of topic: TopicID) throws(StoreError) -> StoredExtent? {
    try read { reader throws(StoreError) in try extent(of: topic, reader) }
  }

  private func extent(of topic: TopicID, _ reader: LMDBReader) throws(StoreError) -> StoredExtent? {
    guard let bytes = try unsafe reader.transaction.get(reader.tables.topics, TopicKey(topic)) else {
      return nil
    }
    if let extent = unsafe TopicEntry.extent(bytes, of: topic) { return extent }
    throw StoreError(
      .damaged,
      "\(directory.data) is damaged: topic \(topic.rawValue) can't be read; sluice store repair saves its records"
    )
  }

  /// As `TopicStore` says. Its read transaction is renewed every few megabytes.
  public func batches(
    of topic: TopicID, from offset: UInt64, _ body: (UInt64, UnsafeRawBufferPointer) -> Bool
  ) throws(StoreError) {
    var next: UInt64? = offset
    while let offset = next {
      next = try read { reader throws(StoreError) in
        try unsafe Self.batches(reader, topic, extent(of: topic, reader), from: offset, body)
      }
    }
  }

  private static let bytesInView = 4 << 20
  /// Values from this size on have pages of their own; smaller ones lie in that of the tree which was read to find them.
  private static let wholePages = 4096

  /// The bytes of a batch. One that the disk can't read is handed out empty, which isn't a valid batch.
  static func readable(_ value: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    let isReadable = unsafe value.count < wholePages || MappedPages.load(value)
    return unsafe isReadable ? value : UnsafeRawBufferPointer(rebasing: value[..<0])
  }

  /// Returns the position at which to continue.
  private static func batches(
    _ reader: LMDBReader, _ topic: TopicID, _ extent: StoredExtent?, from offset: UInt64,
    _ body: (UInt64, UnsafeRawBufferPointer) -> Bool
  ) throws(StoreError) -> UInt64? {
    guard let extent, offset < extent.head else { return nil }
    let cursor = reader.batches
    var position = try position(cursor, topic, offset)
    var bytes = 0
    while let first = position {
      guard bytes < bytesInView else { return first }
      let value = unsafe readable(try cursor.value())
      guard unsafe body(first, value) else { return nil }
      bytes += value.count
      position = try cursor.next(of: topic)
    }
    return nil
  }

  /// Goes to the batch that holds the record, or else to the first one behind it.
  private static func position(
    _ cursor: LMDBCursor, _ topic: TopicID, _ offset: UInt64
  ) throws(StoreError) -> UInt64? {
    let found = try unsafe cursor.seek(BatchKey(topic, offset))
    let following = unsafe found.flatMap { unsafe BatchKey.offset($0, of: topic) }
    if following == offset { return following }
    let before = unsafe found == nil ? try cursor.last() : try cursor.previous()
    if let first = unsafe before.flatMap({ unsafe BatchKey.offset($0, of: topic) }),
      try unsafe !BatchHeader.isBehind(offset, readable(cursor.value()), storedAt: first)
    {
      return first
    }
    return try cursor.seek(topic, offset)
  }
}
