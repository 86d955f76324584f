import CLMDB
import SluiceStore

/// A transaction of LMDB's, and what can be done in it. Its creator ends it; its results are valid until then, or until the next change.
@safe
struct LMDBTransaction {
  /// A named table of the file.
  typealias Table = MDB_dbi

  let pointer: OpaquePointer
  /// For messages.
  let path: String
  /// Bytes that an entry may have: no more than the file, and than any entry.
  let bound: Int

  init(pointer: OpaquePointer, path: String) {
    unsafe self.pointer = unsafe pointer
    self.path = path
    var info = unsafe MDB_envinfo()
    unsafe mdb_env_info(mdb_txn_env(pointer), &info)
    bound = unsafe min(Self.longestValue, Int(clamping: info.me_mapsize))
  }

  func get(_ table: Table, _ key: some LMDBKey) throws(StoreError) -> UnsafeRawBufferPointer? {
    var value = unsafe MDB_val()
    let code = unsafe key.withBytes { bytes in
      var key = unsafe MDB_val(bytes)
      return unsafe mdb_get(pointer, table, &key, &value)
    }
    if code == MDB_NOTFOUND { return nil }
    guard code == 0 else { throw StoreError(lmdb: code, "read from", path) }
    return try unsafe checked(value)
  }

  /// The longest value that there can be: a batch with the longest record.
  static let longestValue = ExportFormat.maximumBody + ExportSection.batchChecksumSize

  /// A key or a value as LMDB hands it out. All of them come by way of this: a damaged page may say any size, which must not reach what reads or
  /// allocates as much.
  func checked(_ value: MDB_val) throws(StoreError) -> UnsafeRawBufferPointer {
    guard unsafe value.mv_size <= bound else {
      throw StoreError(
        .damaged,
        "\(path) is damaged: an entry says that it has \(unsafe value.mv_size) bytes, where \(bound) are possible; sluice store repair saves what can be read"
      )
    }
    return unsafe UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
  }

  /// Which keys a new value may have, so that LMDB can make use of it, or say that it isn't so.
  enum Place {
    case anywhere
    /// There is no value with this key.
    case new
    /// There is no value with this key or a larger one.
    case last

    fileprivate var flags: Int32 {
      switch self {
      case .anywhere: 0
      case .new: MDB_NOOVERWRITE
      case .last: MDB_APPEND
      }
    }
  }

  /// Makes room for a value of `count` bytes, which the caller fills before it does anything else.
  func reserve(
    _ table: Table, _ key: some LMDBKey, count: Int, _ place: Place = .anywhere
  ) throws(StoreError) -> UnsafeMutableRawBufferPointer {
    var value = unsafe MDB_val(mv_size: count, mv_data: nil)
    let code = unsafe key.withBytes { bytes in
      var key = unsafe MDB_val(bytes)
      return unsafe mdb_put(pointer, table, &key, &value, UInt32(MDB_RESERVE | place.flags))
    }
    if code == MDB_KEYEXIST {
      throw StoreError(.damaged, "couldn't write to \(path): something is where a new entry belongs")
    }
    guard code == 0 else { throw StoreError(lmdb: code, "write to", path) }
    return unsafe UnsafeMutableRawBufferPointer(start: value.mv_data, count: count)
  }

  func put(
    _ table: Table, _ key: some LMDBKey, _ bytes: UnsafeRawBufferPointer, _ place: Place = .anywhere
  ) throws(StoreError) {
    try unsafe reserve(table, key, count: bytes.count, place).copyMemory(from: bytes)
  }

  func put(_ table: Table, _ key: some LMDBKey, _ bytes: [UInt8]) throws(StoreError) {
    try unsafe reserve(table, key, count: bytes.count).copyBytes(from: bytes)
  }

  /// Does nothing when there is none.
  func delete(_ table: Table, _ key: some LMDBKey) throws(StoreError) {
    let code = unsafe key.withBytes { bytes in
      var key = unsafe MDB_val(bytes)
      return unsafe mdb_del(pointer, table, &key, nil)
    }
    guard code == 0 || code == MDB_NOTFOUND else { throw StoreError(lmdb: code, "write to", path) }
  }

  /// Bytes of the file that are in no use, or won't be soon.
  func freeBytes() throws(StoreError) -> Int {
    // LMDB's own table of them: by commit, the number of pages and theirs.
    let freePages: Table = 0
    var statistics = MDB_stat()
    unsafe mdb_stat(pointer, freePages, &statistics)
    let cursor = try LMDBCursor(freePages, in: self)
    var pages = 0
    var key = try unsafe cursor.last()
    while unsafe key != nil {
      let list = try unsafe cursor.value()
      if list.count >= 8 { unsafe pages &+= max(list.loadUnaligned(as: Int.self), 0) }
      unsafe key = try unsafe cursor.previous()
    }
    return pages.multipliedReportingOverflow(by: Int(statistics.ms_psize)).partialValue
  }

  /// Shows a table's entries in the order of their keys, from this key on, or from the first, until `body` returns false.
  func forEach(
    _ table: Table, from key: (any LMDBKey)? = nil,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(StoreError) -> Bool
  ) throws(StoreError) {
    let cursor = try LMDBCursor(table, in: self)
    // From behind nothing, the next is the first.
    var found = if let key { try unsafe cursor.seek(key) } else { try unsafe cursor.next() }
    while let key = unsafe found, try unsafe body(key, cursor.value()) {
      unsafe found = try unsafe cursor.next()
    }
  }

  /// Nil when there is no such table.
  func table(named name: String, isCreated: Bool = false) throws(StoreError) -> Table? {
    var table: Table = 0
    let code = unsafe mdb_dbi_open(pointer, name, isCreated ? UInt32(MDB_CREATE) : 0, &table)
    if code == MDB_NOTFOUND { return nil }
    guard code == 0 else { throw StoreError(lmdb: code, "open the table \(name) in", path) }
    return table
  }
}

extension MDB_val {
  init(_ bytes: UnsafeRawBufferPointer) {
    unsafe self.init(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
  }
}

/// A reading transaction with a cursor on the batches, made once and used again and again.
// @unchecked: used by the one thread that took it from the mutex of ``LMDBEnvironment``, until it gives it back there.
struct LMDBReader: @unchecked Sendable {
  let transaction: LMDBTransaction
  let tables: LMDBTables
  let batches: LMDBCursor

  /// Ends the transaction when it fails.
  init(_ transaction: LMDBTransaction, _ tables: LMDBTables) throws(StoreError) {
    self.transaction = transaction
    self.tables = tables
    do throws(StoreError) {
      batches = try LMDBCursor(tables.batches, in: transaction)
    } catch {
      unsafe mdb_txn_abort(transaction.pointer)
      throw error
    }
  }

  /// Sees nothing any longer, and holds nothing.
  func rest() {
    unsafe mdb_txn_reset(transaction.pointer)
  }

  /// Sees what was committed last. Returns LMDB's code.
  func renew() -> Int32 {
    let code = unsafe mdb_txn_renew(transaction.pointer)
    return unsafe code == 0 ? mdb_cursor_renew(transaction.pointer, batches.pointer) : code
  }

  func end() {
    unsafe mdb_txn_abort(transaction.pointer)
  }
}

/// A place in a table, in the order of keys. In a transaction that writes, it must go before that ends.
@safe
final class LMDBCursor {
  let pointer: OpaquePointer
  private let transaction: LMDBTransaction

  init(_ table: LMDBTransaction.Table, in transaction: LMDBTransaction) throws(StoreError) {
    var cursor: OpaquePointer?
    let code = unsafe mdb_cursor_open(transaction.pointer, table, &cursor)
    guard code == 0, let cursor = unsafe cursor else {
      throw StoreError(lmdb: code, "read from", transaction.path)
    }
    unsafe pointer = unsafe cursor
    self.transaction = transaction
  }

  deinit {
    unsafe mdb_cursor_close(pointer)
  }

  /// Goes to the first entry with this key or a larger one, and returns its key; nil when there is none.
  func seek(_ key: some LMDBKey) throws(StoreError) -> UnsafeRawBufferPointer? {
    var found = unsafe MDB_val()
    let code = unsafe key.withBytes { bytes in
      unsafe found = unsafe MDB_val(bytes)
      return unsafe mdb_cursor_get(pointer, &found, nil, MDB_SET_RANGE)
    }
    return try unsafe result(code, found)
  }

  /// The key of the next entry; nil behind the last one.
  func next() throws(StoreError) -> UnsafeRawBufferPointer? { try unsafe move(MDB_NEXT) }

  /// The key of the entry before; nil ahead of the first one. From behind the last entry it goes to that one.
  func previous() throws(StoreError) -> UnsafeRawBufferPointer? { try unsafe move(MDB_PREV) }

  /// The key of the last entry of all.
  func last() throws(StoreError) -> UnsafeRawBufferPointer? { try unsafe move(MDB_LAST) }

  private func move(_ operation: MDB_cursor_op) throws(StoreError) -> UnsafeRawBufferPointer? {
    var found = unsafe MDB_val()
    return try unsafe result(mdb_cursor_get(pointer, &found, nil, operation), found)
  }

  /// As ``seek(_:)`` and ``next()``, in the table of batches: the offset of the batch; nil when it is another topic's.
  func seek(_ topic: TopicID, _ offset: UInt64) throws(StoreError) -> UInt64? {
    try unsafe seek(BatchKey(topic, offset)).flatMap { unsafe BatchKey.offset($0, of: topic) }
  }

  func next(of topic: TopicID) throws(StoreError) -> UInt64? {
    try unsafe next().flatMap { unsafe BatchKey.offset($0, of: topic) }
  }

  /// The value of the entry that it stands at.
  func value() throws(StoreError) -> UnsafeRawBufferPointer {
    var key = unsafe MDB_val()
    var value = unsafe MDB_val()
    let code = unsafe mdb_cursor_get(pointer, &key, &value, MDB_GET_CURRENT)
    guard code == 0 else { throw StoreError(lmdb: code, "read from", transaction.path) }
    return try unsafe transaction.checked(value)
  }

  private func result(_ code: Int32, _ key: MDB_val) throws(StoreError) -> UnsafeRawBufferPointer? {
    if code == MDB_NOTFOUND { return nil }
    guard code == 0 else { throw StoreError(lmdb: code, "read from", transaction.path) }
    return try unsafe transaction.checked(key)
  }
}
