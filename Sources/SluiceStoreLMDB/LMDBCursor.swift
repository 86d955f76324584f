import CLMDB
import SluiceStore

/// A place in a table, in the order of keys. Its creator closes it.
@safe
struct LMDBCursor {
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

  func close() {
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
