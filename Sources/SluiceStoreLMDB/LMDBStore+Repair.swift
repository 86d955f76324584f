import CLMDB
import Glibc
import SluiceStore

extension LMDBStore: RepairableStore {
  public func inspection() throws(StoreError) -> StoreInspection {
    let size = try storeSize()
    return try read { reader throws(StoreError) in
      let (transaction, tables) = (reader.transaction, reader.tables)
      var topics: [StoreInspection.Topic] = []
      try unsafe transaction.forEach(tables.topics) { key, value in
        if let id = unsafe TopicKey.topic(key) { unsafe topics.append(Self.topic(id, value)) }
        return true
      }
      var known = Set(topics.map(\.id))
      try unsafe transaction.forEach(tables.garbage) { key, _ in
        if let id = unsafe TopicKey.topic(key) { known.insert(id) }
        return true
      }
      var strays = try unsafe Self.topics(tables.batches, transaction, BatchKey.topic) { BatchKey($0, 0) }
      let owners = try unsafe Self.topics(tables.states, transaction, StateKey.topic) { StateKey($0, nil) }
      strays.formUnion(owners)
      strays.subtract(known)
      return StoreInspection(
        topics: topics, strays: strays.sorted(),
        nextTopic: TopicID(rawValue: try Self.nextTopic(transaction, tables)),
        wasClosed: wasClosed, size: size)
    }
  }

  private static func topic(_ id: TopicID, _ value: UnsafeRawBufferPointer) -> StoreInspection.Topic {
    guard value.count >= TopicEntry.rowPosition else {
      return StoreInspection.Topic(
        id: id, row: .failure(StoreError(.damaged, "a topic's row can't be read: it is cut short")),
        extent: nil)
    }
    let bytes = unsafe UnsafeRawBufferPointer(rebasing: value[TopicEntry.rowPosition...])
    let row = Result { () throws(StoreError) in try unsafe StoredTopic(decoding: bytes) }
    return unsafe StoreInspection.Topic(id: id, row: row, extent: TopicEntry.extent(value, of: id))
  }

  /// The number of the next topic. One that can't be read counts as the least.
  private static func nextTopic(
    _ transaction: LMDBTransaction, _ tables: LMDBTables
  ) throws(StoreError) -> UInt64 {
    guard let bytes = try unsafe transaction.get(tables.meta, MetaKey.nextTopic), bytes.count == 8 else {
      return 0
    }
    return unsafe UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self))
  }

  /// The topics whose numbers have something in a table.
  private static func topics<Key: LMDBKey>(
    _ table: LMDBTransaction.Table, _ transaction: LMDBTransaction,
    _ topic: (UnsafeRawBufferPointer) -> TopicID?, _ first: (TopicID) -> Key
  ) throws(StoreError) -> Set<TopicID> {
    let cursor = try LMDBCursor(table, in: transaction)
    var topics: Set<TopicID> = []
    var key = try unsafe cursor.seek(first(TopicID(rawValue: 0)))
    while let found = unsafe key.flatMap(topic) {
      topics.insert(found)
      guard found.rawValue < .max else { break }
      unsafe key = try unsafe cursor.seek(first(TopicID(rawValue: found.rawValue + 1)))
    }
    return topics
  }

  // MARK: What a topic has

  public func rawBatches(
    of topic: TopicID, _ body: (UInt64, UnsafeRawBufferPointer) -> Bool
  ) throws(StoreError) {
    try read { reader throws(StoreError) in
      var offset = try reader.batches.seek(topic, 0)
      while let first = offset, unsafe body(first, Self.readable(try reader.batches.value())) {
        offset = try reader.batches.next(of: topic)
      }
    }
  }

  public func rawStates(of topic: TopicID, _ body: (RawState) -> Bool) throws(StoreError) {
    try read { reader throws(StoreError) in
      try unsafe reader.transaction.forEach(reader.tables.states, from: StateKey(topic, nil)) { key, value in
        unsafe StateKey.topic(key) == topic && body(RawState(key: Array(key[8...]), value: Array(value)))
      }
    }
  }

  public func size() throws(StoreError) -> StoreSize? {
    // A process that was killed while it exported would keep pages from being used again.
    if options.access.isWriting {
      try use { environment throws(StoreError) in environment.forgetDeadReaders() }
    }
    return try storeSize()
  }

  /// How large the file is, and how much of it is free.
  private func storeSize() throws(StoreError) -> StoreSize {
    let path = directory.data
    return try use { environment throws(StoreError) -> StoreSize? in
      guard let reader = try environment.reader() else { return nil }
      defer { environment.giveBack(reader) }
      var status = stat()
      guard unsafe stat(path, &status) == 0 else { throw StoreError(errno: errno, "look at", path) }
      let facts = environment.facts
      // Table 0 has lists of free pages, by the commits that freed them; in front of each list is its length.
      var pages: UInt64 = 0
      try unsafe reader.transaction.forEach(0) { _, value in
        if value.count >= 8 { unsafe pages &+= value.loadUnaligned(as: UInt64.self) }
        return true
      }
      let file = UInt64(status.st_size)
      var system = statvfs()
      let isKnown = unsafe statvfs(path, &system) == 0
      let available = isKnown ? UInt64(system.f_bavail) &* UInt64(system.f_frsize) : nil
      let unused = file - min(file, UInt64(facts.bytes))
      return StoreSize(
        files: file, reusable: min(file, pages &* UInt64(facts.pageSize) &+ unused),
        limit: UInt64(facts.limit), available: available)
    }
  }
}

// MARK: Mending

extension LMDBStore {
  public func mend(_ repair: TopicRepair) throws(StoreError) {
    try write(.takesAndFrees) { transaction, tables throws(StoreError) in
      if !isMarkedOpen { try transaction.put(number: UInt8(0), tables.meta, .closed) }
      try raiseNextTopic(above: repair.topic, transaction, tables)
      if repair.isRemoval {
        return try tables.delete(repair.topic, in: transaction)
      }
      for offset in repair.batches { try transaction.delete(tables.batches, BatchKey(repair.topic, offset)) }
      for key in repair.states { try transaction.delete(tables.states, StateKey(repair.topic, nil, key)) }
      try writeEntry(repair, transaction, tables)
    }
    isMarkedOpen = true
    while repair.isRemoval, try reclaim() {}
  }

  private func raiseNextTopic(
    above topic: TopicID, _ transaction: LMDBTransaction, _ tables: LMDBTables
  ) throws(StoreError) {
    let next = try Self.nextTopic(transaction, tables)
    guard next <= topic.rawValue, topic.rawValue < .max else { return }
    try transaction.put(number: topic.rawValue + 1, tables.meta, .nextTopic)
  }

  private func writeEntry(
    _ repair: TopicRepair, _ transaction: LMDBTransaction, _ tables: LMDBTables
  ) throws(StoreError) {
    guard repair.extent != nil || repair.row != nil else { return }
    let key = TopicKey(repair.topic)
    guard let bytes = try unsafe transaction.get(tables.topics, key) else { return }
    var entry = unsafe TopicEntry(
      extent: TopicEntry.extent(bytes, of: repair.topic) ?? StoredExtent(),
      row: Array(bytes.dropFirst(TopicEntry.rowPosition)))
    if let extent = repair.extent { entry.extent = extent }
    if let row = repair.row { entry.row = row.encoded() }
    unsafe entry.write(to: try transaction.reserve(tables.topics, key, count: entry.count), for: repair.topic)
  }
}
