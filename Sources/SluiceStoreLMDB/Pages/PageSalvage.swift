import SluiceStore

/// The readable content of a damaged file, and its copy into a new one.
struct PageSalvage {
  private let path: String
  private let file: PageFile
  private let metas: [PageMeta]
  private var summary = StoreRebuild(faults: [])

  init(_ path: String) throws(StoreError) {
    self.path = path
    file = try PageFile(path)
    metas = PageMeta.all(of: file)
  }

  /// Bytes of the damaged file.
  var size: UInt64 { UInt64(file.size) }

  /// Writes a new file.
  ///
  /// - Parameter progress: called now and then with the number of processed bytes of the damaged file; returns whether to continue.
  mutating func write(
    to new: String, limit: Int, faults: [String], progress: @escaping (UInt64) -> Bool = { _ in true }
  ) throws(StoreError) -> StoreRebuild {
    summary = StoreRebuild(faults: faults)
    guard let meta = readable() else {
      throw StoreError(
        .damaged,
        "nothing in \(path) can be read: \(faults.joined(separator: "; ")); put a backup in its place")
    }
    let schema = LMDBSchema.current
    let facts = facts(meta)
    if let version: UInt32 = facts["version"]?.number(at: 0), version != schema.version {
      throw StoreError(
        version > schema.version ? .newer : .failed,
        "the store in \(path) has version \(version), and only one of version \(schema.version) can be built anew; put a backup in its place"
      )
    }
    let environment = try LMDBEnvironment(path: new, limit: limit, isWritten: true) {
      transaction throws(StoreError) in try schema.create(in: transaction)
    }
    let tables = environment.tables
    var walk = PageWalk(file, meta)
    let trees = walk.tables(meta)
    let pageSize = UInt64(meta.pageSize)
    walk.progress = { progress($0 * pageSize) }
    let path = path
    func copy(
      _ name: String, _ table: LMDBTransaction.Table
    ) throws(StoreError) -> (count: UInt64, topics: Set<UInt64>) {
      guard let tree = trees[name] else { return (0, []) }
      var copy = PageCopy(file, environment, table)
      walk.walk(tree, name) { copy.take($0) }
      if walk.isStopped { throw StoreError(.failed, "the copy of \(path) was stopped before it was through") }
      try copy.finish()
      summary.lost += copy.lost
      return (copy.written, copy.topics)
    }
    let topics = try copy("topics", tables.topics)
    let garbage = try copy("garbage", tables.garbage)
    let batches = try copy("batches", tables.batches)
    let states = try copy("states", tables.states)
    (summary.topics, summary.batches, summary.states) = (topics.count, batches.count, states.count)
    let owners = batches.topics.union(states.topics)
    let ownerless = owners.subtracting(topics.topics).subtracting(garbage.topics)
    summary.topicsWithoutRows = UInt64(ownerless.count)
    let last = owners.union(topics.topics).union(garbage.topics).max() ?? 0
    let nextTopic = max(facts["nextTopic"]?.number(at: 0) ?? 1, last == .max ? last : last + 1)
    try environment.write { transaction throws(StoreError) in
      // A row that can't be read, which is what it is.
      for topic in ownerless.sorted() {
        let row = [UInt8](repeating: 0, count: 8)
        try transaction.put(tables.topics, TopicKey(TopicID(rawValue: topic)), row)
      }
      try transaction.put(number: nextTopic, tables.meta, .nextTopic)
      // A record is lost: a reader that has received it must not continue as if it still existed.
      try transaction.put(number: UInt8(0), tables.meta, .closed)
    }
    return summary
  }

  /// The state of the file after its last commit; if that can't be read, after the one before.
  private func readable() -> PageMeta? {
    let metas = metas.filter { $0.lastPage < UInt64(Int.max / $0.pageSize) }
    return metas.first { meta in
      var walk = PageWalk(file, meta)
      var isFound = false
      for (name, tree) in walk.tables(meta) where name == "topics" || name == "batches" {
        walk.walk(tree, name) { _ in isFound = true }
      }
      return isFound
    }
      ?? metas.first { meta in
        var walk = PageWalk(file, meta)
        return !walk.tables(meta).isEmpty
      }
  }

  /// The content of the table `meta`.
  private func facts(_ meta: PageMeta) -> [String: [UInt8]] {
    var walk = PageWalk(file, meta)
    var facts: [String: [UInt8]] = [:]
    guard let tree = walk.tables(meta)["meta"] else { return [:] }
    walk.walk(tree, "meta") { entry in
      facts[String(decoding: entry.key, as: UTF8.self)] = entry.bytes(in: file)
    }
    return facts
  }
}

/// A table on its way into a new file: entries are gathered, and committed together.
private struct PageCopy {
  /// So many bytes, or entries, are written in one commit.
  private static let commitBytes = 32 << 20
  private static let commitEntries = 10_000

  private let file: PageFile
  private let environment: LMDBEnvironment
  private let table: LMDBTransaction.Table
  private var gathered: [(key: [UInt8], value: [UInt8])] = []
  private var bytes = 0
  private var fault: StoreError?
  private(set) var written: UInt64 = 0
  private(set) var lost: UInt64 = 0
  /// The numbers of topics that keys begin with.
  private(set) var topics: Set<UInt64> = []

  init(_ file: PageFile, _ environment: LMDBEnvironment, _ table: LMDBTransaction.Table) {
    self.file = file
    self.environment = environment
    self.table = table
  }

  mutating func take(_ entry: PageWalk.Entry) {
    guard fault == nil, !entry.isTable else { return }
    guard let value = entry.bytes(in: file), let topic: UInt64 = entry.key.number(at: 0) else {
      lost += 1
      return
    }
    topics.insert(topic.byteSwapped)
    gathered.append((entry.key, value))
    bytes += value.count
    guard bytes >= Self.commitBytes || gathered.count >= Self.commitEntries else { return }
    do throws(StoreError) {
      try commit()
    } catch {
      fault = error
    }
  }

  mutating func finish() throws(StoreError) {
    if let fault { throw fault }
    try commit()
  }

  private mutating func commit() throws(StoreError) {
    if gathered.isEmpty { return }
    let (entries, table) = (gathered, table)
    written += try environment.write { transaction throws(StoreError) -> UInt64 in
      var written: UInt64 = 0
      for (key, value) in entries {
        // Pages that are in disorder may have a key twice.
        guard try unsafe transaction.get(table, key) == nil else { continue }
        try transaction.put(table, key, value)
        written += 1
      }
      return written
    }
    gathered = []
    bytes = 0
  }
}
