import CLMDB

/// A place in a table, in the order of keys. Closed by who opened it.
struct LMDBCursor {
  let pointer: OpaquePointer
  /// For messages.
  let path: String

  init(_ table: LMDBTransaction.Table, in transaction: LMDBTransaction) throws(StoreError) {
    var cursor: OpaquePointer?
    let code = mdb_cursor_open(transaction.pointer, table, &cursor)
    guard code == 0, let cursor else { throw StoreError(lmdb: code, "read from", transaction.path) }
    pointer = cursor
    path = transaction.path
  }

  func close() {
    mdb_cursor_close(pointer)
  }

  /// Goes to the first entry with this key or a larger one, and returns its key; nil when there is none.
  func seek(_ key: some LMDBKey) throws(StoreError) -> UnsafeRawBufferPointer? {
    var found = MDB_val()
    let code = key.withBytes { bytes in
      found = MDB_val(bytes)
      return mdb_cursor_get(pointer, &found, nil, MDB_SET_RANGE)
    }
    return try result(code, found)
  }

  /// The key of the next entry; nil behind the last one.
  func next() throws(StoreError) -> UnsafeRawBufferPointer? { try move(MDB_NEXT) }

  /// The key of the entry before; nil ahead of the first one. From behind the last entry it goes to that one.
  func previous() throws(StoreError) -> UnsafeRawBufferPointer? { try move(MDB_PREV) }

  /// The key of the last entry of all.
  func last() throws(StoreError) -> UnsafeRawBufferPointer? { try move(MDB_LAST) }

  private func move(_ operation: MDB_cursor_op) throws(StoreError) -> UnsafeRawBufferPointer? {
    var found = MDB_val()
    return try result(mdb_cursor_get(pointer, &found, nil, operation), found)
  }

  /// The value of the entry that it stands at.
  func value() throws(StoreError) -> UnsafeRawBufferPointer {
    var key = MDB_val()
    var value = MDB_val()
    let code = mdb_cursor_get(pointer, &key, &value, MDB_GET_CURRENT)
    guard code == 0 else { throw StoreError(lmdb: code, "read from", path) }
    return UnsafeRawBufferPointer(value)
  }

  private func result(_ code: Int32, _ key: MDB_val) throws(StoreError) -> UnsafeRawBufferPointer? {
    if code == MDB_NOTFOUND { return nil }
    guard code == 0 else { throw StoreError(lmdb: code, "read from", path) }
    return UnsafeRawBufferPointer(key)
  }
}
