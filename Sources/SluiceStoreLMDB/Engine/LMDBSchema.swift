import SluiceStore

/// The layout of the tables, and the migrations from older layouts.
struct LMDBSchema: Sendable {
  /// Migrates a store from one version to the next, within the transaction that opens it: all of it, or nothing.
  typealias Migration = @Sendable (LMDBTransaction) throws(StoreError) -> Void

  /// The version that is written.
  var version: UInt32
  /// By the version that they begin with: one for each that came before.
  var migrations: [UInt32: Migration]

  static let current = LMDBSchema(version: 1, migrations: [:])

  /// Makes the tables of a new store.
  func create(in transaction: LMDBTransaction) throws(StoreError) -> LMDBTables {
    let tables = try LMDBTables { name throws(StoreError) in
      if let table = try transaction.table(named: name, isCreated: true) { return table }
      throw StoreError(.failed, "couldn't make the table \(name) in \(transaction.path)")
    }
    try transaction.put(number: version, tables.meta, .version)
    try transaction.put(number: UInt8(1), tables.meta, .closed)
    try transaction.put(number: UInt64(1), tables.meta, .nextTopic)
    return tables
  }

  /// - Parameter isWritten: Whether it may be brought to today's version.
  func open(in transaction: LMDBTransaction, isWritten: Bool) throws(StoreError) -> LMDBTables {
    guard let meta = try transaction.table(named: "meta"),
      var found: UInt32 = try transaction.number(meta, .version)
    else { throw StoreError(.notAStore, "\(transaction.path) isn't a store of this software") }
    guard found <= version else {
      throw StoreError(
        .newer,
        """
        the store in \(transaction.path) has version \(found), and this software knows versions up to \(version); \
        use the software that wrote it, or a newer one
        """)
    }
    guard found == version || isWritten else {
      throw StoreError(
        .failed,
        """
        the store in \(transaction.path) has version \(found), and only reading isn't enough to bring it to \
        \(version); let the broker open it once
        """)
    }
    while found < version {
      guard let migration = migrations[found] else {
        throw StoreError(
          .notAStore, "the store in \(transaction.path) has version \(found), which no release has had")
      }
      try migration(transaction)
      found += 1
      try transaction.put(number: found, meta, .version)
    }
    return try LMDBTables { name throws(StoreError) in
      if let table = try transaction.table(named: name) { return table }
      throw StoreError(
        .damaged, "\(transaction.path) is damaged: it has no table \(name); put a backup in its place")
    }
  }
}

extension LMDBTransaction {
  func number<Number: FixedWidthInteger & BitwiseCopyable>(
    _ table: Table, _ key: MetaKey
  ) throws(StoreError) -> Number? {
    guard let bytes = try unsafe get(table, key) else { return nil }
    guard bytes.count == MemoryLayout<Number>.size else {
      throw StoreError(
        .damaged,
        "\(path) is damaged: its \(key.rawValue) has \(bytes.count) bytes; put a backup in its place")
    }
    return unsafe Number(littleEndian: bytes.loadUnaligned(as: Number.self))
  }

  func put(
    number: some FixedWidthInteger & BitwiseCopyable, _ table: Table, _ key: MetaKey
  ) throws(StoreError) {
    let bytes = try unsafe reserve(table, key, count: number.bitWidth / 8)
    unsafe bytes.storeBytes(of: number.littleEndian, as: type(of: number))
  }
}
