import CLMDB
import Glibc
import SluiceStore

extension LMDBStore: RepairableStore {
  public func inspection() throws(StoreError) -> StoreInspection {
    let size = try storeSize()
    return try read { reader throws(StoreError) in
      let (transaction, tables) = (reader.transaction, reader.tables)
      var topics: [StoreInspection.Topic] = []
      try unsafe forEach(tables.topics, in: transaction) { key, value in
        if let id = unsafe TopicKey.topic(key) { unsafe topics.append(Self.topic(id, value)) }
      }
      var known = Set(topics.map(\.id))
      try unsafe forEach(tables.garbage, in: transaction) { key, _ in
        if let id = unsafe TopicKey.topic(key) { known.insert(id) }
      }
      var strays = try topicsWithBatches(reader).union(topicsWithStates(reader))
      strays.subtract(known)
      // One that can't be read counts as the least.
      let next = try unsafe transaction.get(tables.meta, MetaKey.nextTopic).flatMap { bytes in
        unsafe bytes.count == 8 ? UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self)) : nil
      }
      return StoreInspection(
        topics: topics, strays: strays.sorted(), nextTopic: TopicID(rawValue: next ?? 0),
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

  private func forEach(
    _ table: LMDBTransaction.Table, in transaction: LMDBTransaction,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void
  ) throws(StoreError) {
    let cursor = try LMDBCursor(table, in: transaction)
    defer { cursor.close() }
    // From behind nothing, the next is the first.
    var key = try unsafe cursor.next()
    while let found = unsafe key {
      unsafe body(found, try cursor.value())
      unsafe key = try unsafe cursor.next()
    }
  }

  // MARK: Numbers that have something

  private func topicsWithBatches(_ reader: LMDBReader) throws(StoreError) -> Set<TopicID> {
    let cursor = try LMDBCursor(reader.tables.batches, in: reader.transaction)
    defer { cursor.close() }
    var topics: Set<TopicID> = []
    var key = try unsafe cursor.seek(BatchKey(TopicID(rawValue: 0), 0))
    while let topic = unsafe key.flatMap(BatchKey.topic) {
      topics.insert(topic)
      guard topic.rawValue < .max else { break }
      unsafe key = try unsafe cursor.seek(BatchKey(TopicID(rawValue: topic.rawValue + 1), 0))
    }
    return topics
  }

  private func topicsWithStates(_ reader: LMDBReader) throws(StoreError) -> Set<TopicID> {
    let cursor = try LMDBCursor(reader.tables.states, in: reader.transaction)
    defer { cursor.close() }
    var topics: Set<TopicID> = []
    var key = try unsafe cursor.seek(StateKey(TopicID(rawValue: 0), nil))
    while let topic = unsafe key.flatMap(StateKey.topic) {
      topics.insert(topic)
      guard topic.rawValue < .max else { break }
      unsafe key = try unsafe cursor.seek(StateKey(TopicID(rawValue: topic.rawValue + 1), nil))
    }
    return topics
  }

  // MARK: What a topic has

  public func rawBatches(
    of topic: TopicID, _ body: (UInt64, UnsafeRawBufferPointer) -> Bool
  ) throws(StoreError) {
    try read { reader throws(StoreError) in
      var offset = try unsafe reader.batches.seek(BatchKey(topic, 0)).flatMap {
        unsafe BatchKey.offset($0, of: topic)
      }
      while let first = offset, unsafe body(first, Self.readable(try reader.batches.value())) {
        offset = try unsafe reader.batches.next().flatMap { unsafe BatchKey.offset($0, of: topic) }
      }
    }
  }

  public func rawStates(of topic: TopicID, _ body: (RawState) -> Bool) throws(StoreError) {
    try read { reader throws(StoreError) in
      let cursor = try LMDBCursor(reader.tables.states, in: reader.transaction)
      defer { cursor.close() }
      var key = try unsafe cursor.seek(StateKey(topic, nil))
      while let found = unsafe key, unsafe StateKey.topic(found) == topic {
        guard unsafe body(RawState(key: Array(found[8...]), value: Array(try cursor.value()))) else { return }
        unsafe key = try unsafe cursor.next()
      }
    }
  }

  public func size() throws(StoreError) -> StoreSize? { try storeSize() }

  /// How large the file is, and how much of it is free.
  private func storeSize() throws(StoreError) -> StoreSize {
    let path = directory.data
    return try use { environment throws(StoreError) -> StoreSize? in
      guard let reader = try environment.reader() else { return nil }
      defer { environment.giveBack(reader) }
      var status = stat()
      guard unsafe stat(path, &status) == 0 else { throw StoreError(errno: errno, "look at", path) }
      var info = unsafe MDB_envinfo()
      var statistics = MDB_stat()
      unsafe mdb_env_info(environment.pointer, &info)
      unsafe mdb_env_stat(environment.pointer, &statistics)
      // Table 0 has lists of free pages, by the commits that freed them; in front of each list is its length.
      var pages: UInt64 = 0
      try unsafe forEach(0, in: reader.transaction) { _, value in
        if value.count >= 8 { unsafe pages &+= value.loadUnaligned(as: UInt64.self) }
      }
      let pageSize = UInt64(statistics.ms_psize)
      let used = unsafe (UInt64(info.me_last_pgno) + 1) &* pageSize
      let file = UInt64(status.st_size)
      var system = statvfs()
      let isKnown = unsafe statvfs(path, &system) == 0
      let available = isKnown ? UInt64(system.f_bavail) &* UInt64(system.f_frsize) : nil
      return unsafe StoreSize(
        files: file, reusable: min(file, pages &* pageSize &+ (file - min(file, used))),
        limit: UInt64(info.me_mapsize), available: available)
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
        try transaction.delete(tables.topics, TopicKey(repair.topic))
        return _ = try unsafe transaction.reserve(tables.garbage, TopicKey(repair.topic), count: 0)
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
    let next = try unsafe transaction.get(tables.meta, MetaKey.nextTopic).flatMap { bytes in
      unsafe bytes.count == 8 ? UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self)) : nil
    }
    guard next ?? 0 <= topic.rawValue, topic.rawValue < .max else { return }
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
