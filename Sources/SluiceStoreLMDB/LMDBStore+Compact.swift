import CLMDB
import Glibc
import SluiceStore

extension LMDBStore {
  /// Puts a copy without free space in the store's place.
  ///
  /// The copy takes room beside the store while it is made. A crash at any time leaves the one or the other. The store can't be used
  /// afterwards: the caller opens it again.
  ///
  /// - Returns: the sizes of the file before and after.
  /// - Throws: ``StoreError``; the store is as before then.
  public func compact() throws(StoreError) -> (before: UInt64, after: UInt64) {
    while try reclaim() {}
    // The copy is as it was found: in order, or not.
    if wasClosed, isMarkedOpen { try markClosed() }
    do throws(StoreError) {
      let before = try fileSize(directory.data)
      try copy(to: directory.new)
      let after = try fileSize(directory.new)
      try directory.adoptNew()
      return (before, after)
    } catch {
      directory.removeNew()
      throw error
    }
  }

  private func copy(to path: String) throws(StoreError) {
    let file = unsafe Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw StoreError(errno: errno, "make", path) }
    defer { Glibc.close(file) }
    try use { environment throws(StoreError) in
      let code = unsafe mdb_env_copyfd2(environment.pointer, file, UInt32(MDB_CP_COMPACT))
      guard code == 0 else { throw StoreError(lmdb: code, "copy the store to", path) }
    }
    guard fsync(file) == 0 else { throw StoreError(errno: errno, "sync", path) }
  }

  private func fileSize(_ path: String) throws(StoreError) -> UInt64 {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { throw StoreError(errno: errno, "look at", path) }
    return UInt64(status.st_size)
  }

  /// Lets go of a store that a tool has had open: marked as closed in order only if it was when it was opened. What was lost in a crash before is known
  /// to the broker only by that.
  public func leave() throws(StoreError) {
    if wasClosed { try close() }
  }
}
