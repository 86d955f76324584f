import CLMDB
import TestSupport

@testable import SluiceStoreLMDB

/// Changes a store's file directly, while no process has it open.
enum LMDBTampering {
  /// Changes values of a table: `change` gets each key and its value, and returns the new value; nil removes it.
  static func change(
    _ directory: String, _ table: String, _ change: (_ key: [UInt8], _ value: [UInt8]) -> [UInt8]?
  ) throws {
    try open(directory, table) { transaction, table in
      var entries: [(key: [UInt8], value: [UInt8])] = []
      var cursor: OpaquePointer?
      try check(mdb_cursor_open(transaction, table, &cursor))
      var key = MDB_val()
      var value = MDB_val()
      while mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0 {
        entries.append((bytes(of: key), bytes(of: value)))
      }
      mdb_cursor_close(cursor)
      for entry in entries {
        let changed = change(entry.key, entry.value)
        if changed != entry.value { try put(transaction, table, entry.key, changed) }
      }
    }
  }

  /// Sets a value, or removes it.
  static func set(_ directory: String, _ table: String, _ key: [UInt8], _ value: [UInt8]?) throws {
    try open(directory, table) { try put($0, $1, key, value) }
  }

  private static func put(
    _ transaction: OpaquePointer, _ table: MDB_dbi, _ key: [UInt8], _ value: [UInt8]?
  ) throws {
    try key.withUnsafeBytes { key in
      var key = MDB_val(key)
      guard let value else { return try check(mdb_del(transaction, table, &key, nil)) }
      try value.withUnsafeBytes { value in
        var value = MDB_val(value)
        try check(mdb_put(transaction, table, &key, &value, 0))
      }
    }
  }

  private static func open(
    _ directory: String, _ name: String, _ body: (OpaquePointer, MDB_dbi) throws -> Void
  ) throws {
    var environment: OpaquePointer?
    try check(mdb_env_create(&environment))
    defer { mdb_env_close(environment) }
    mdb_env_set_maxdbs(environment, 8)
    mdb_env_set_mapsize(environment, 256 << 20)
    try check(
      mdb_env_open(environment, "\(directory)/data.mdb", UInt32(MDB_NOSUBDIR | MDB_NOLOCK), 0o600))
    var transaction: OpaquePointer?
    try check(mdb_txn_begin(environment, nil, 0, &transaction))
    guard let transaction else { return }
    var table: MDB_dbi = 0
    try check(mdb_dbi_open(transaction, name, 0, &table))
    do {
      try body(transaction, table)
    } catch {
      mdb_txn_abort(transaction)
      throw error
    }
    try check(mdb_txn_commit(transaction))
  }

  private static func check(_ code: Int32) throws {
    guard code == 0 else { throw TestFailure(String(cString: mdb_strerror(code))) }
  }
}

/// The bytes that LMDB points to.
private func bytes(of value: MDB_val) -> [UInt8] {
  Array(UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
}
