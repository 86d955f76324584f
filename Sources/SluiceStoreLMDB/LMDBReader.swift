import CLMDB
import SluiceStore

/// A reading transaction with a cursor on the batches, made once and used again and again.
// @unchecked: used by one thread at a time.
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
    batches.close()
    unsafe mdb_txn_abort(transaction.pointer)
  }
}
