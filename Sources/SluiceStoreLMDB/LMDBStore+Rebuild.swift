import CLMDB
import Glibc
import SluiceStore

extension LMDBStore {
  /// Replaces the store's file by a copy without free space.
  ///
  /// The copy takes room beside the store while it is made. A crash at any time leaves the one or the other. The store can't be used
  /// afterwards: the caller opens it again.
  ///
  /// - Returns: the sizes of the file before and after.
  /// - Throws: `StoreError`; the store is as before then.
  public func compact() throws(StoreError) -> (before: UInt64, after: UInt64) {
    while try reclaim() {}
    // The copy is marked as the original: closed, or not.
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

  /// Closes a store that a tool has used: marks it as closed only if it was so when it was opened. Without that mark
  /// the broker knows that a crash before may have lost records.
  public func leave() throws(StoreError) {
    if wasClosed { try close() }
  }
}

extension LMDBStore {
  /// Returns the damage in the structure of a store's file, in a line each; empty for a sound file. No process may have it open to write.
  ///
  /// A damaged store can't be opened safely: LMDB trusts its pages.
  ///
  /// - Parameters:
  ///   - path: the store's directory.
  ///   - progress: called now and then with the number of processed bytes of the file and with all bytes; returns whether to continue.
  /// - Throws: `StoreError` when the file can't be opened, or `progress` returned false.
  public static func pageFaults(
    at path: String, progress: @escaping (_ done: UInt64, _ total: UInt64) -> Bool = { _, _ in true }
  ) throws(StoreError) -> [String] {
    let directory = try StoreDirectory(path)
    let lock = try StoreLock(path, isShared: true)
    defer { lock.release() }
    return try PageCheck(directory.data, progress: progress).faults
  }

  /// Rebuilds a store from what can be read of a damaged file, without LMDB reading that.
  ///
  /// The old file stays in its place until the new one is complete, on disk, and verified. So a failure, or a crash at any time, leaves
  /// the one or the other. Batches are copied unverified: `StoreRepair` checks them.
  ///
  /// - Parameters:
  ///   - path: the store's directory.
  ///   - limit: how large the new file may become, in bytes.
  ///   - progress: as with ``pageFaults(at:progress:)``. A damaged file is gone through three times, and all bytes are three times those of the file
  ///     from then on: it is checked, copied, and the new file is checked.
  /// - Returns: nil when the file's structure isn't damaged; nothing was changed then.
  /// - Throws: `StoreError.Kind.damaged` when nothing can be read; `StoreError.Kind.full` when there is no room for both files;
  ///   `StoreError.Kind.newer`.
  public static func rebuild(
    at path: String, limit: Int = Options().limit,
    progress: @escaping (_ done: UInt64, _ total: UInt64) -> Bool = { _, _ in true }
  ) throws(StoreError) -> StoreRebuild? {
    let directory = try StoreDirectory(path)
    let lock = try StoreLock(path, isShared: false)
    defer { lock.release() }
    let faults = try PageCheck(directory.data, progress: progress).faults
    if faults.isEmpty { return nil }
    directory.removeNew()
    do throws(StoreError) {
      var salvage = try PageSalvage(directory.data)
      let size = salvage.size
      let summary = try salvage.write(to: directory.new, limit: limit, faults: faults) {
        progress(size + min($0, size), 3 * size)
      }
      let check = try PageCheck(directory.new) { done, _ in progress(2 * size + min(done, size), 3 * size) }
      if let fault = check.faults.first {
        throw StoreError(.failed, "couldn't build \(path) anew: \(fault)")
      }
      try directory.adoptNew()
      // It describes the former file's readers.
      unsafe unlink(LMDBLockFile.path(beside: directory.data))
      return summary
    } catch {
      directory.removeNew()
      throw error
    }
  }
}
