import CLMDB
import Glibc
import SluiceStore

/// What came of building a store anew from what could be read of its file.
public struct StoreRebuild: Hashable, Sendable {
  /// What was damaged in the old file, in a line each.
  public var faults: [String]
  /// What was read of it, and is in the new one.
  public var topics: UInt64 = 0
  public var batches: UInt64 = 0
  public var states: UInt64 = 0
  /// Batches and states of topics whose rows couldn't be read: they are in the new store, under rows that ``StoreRepair`` restores.
  public var topicsWithoutRows: UInt64 = 0
  /// Entries whose values couldn't be read.
  public var lost: UInt64 = 0
}

extension LMDBStore {
  /// What is damaged in the structure of a store's file, in a line each; empty when nothing is. No process may have it open to write.
  ///
  /// A store in which something is can't be opened without danger: LMDB takes its pages for what they say.
  public static func pageFaults(at path: String) throws(StoreError) -> [String] {
    let directory = try StoreDirectory(path, .readOnly)
    let lock = try StoreLock(path, isShared: true)
    defer { lock.release() }
    return try PageCheck(directory.data).faults
  }

  /// Builds a store anew from what can be read of a damaged file, without LMDB reading that.
  ///
  /// The old file stays in its place until the new one is complete, on disk, and found to be in order. So a failure, or a crash at any time, leaves
  /// the one or the other. Batches are taken as they are: ``StoreRepair`` judges them.
  ///
  /// - Returns: nil when the file's structure isn't damaged; nothing was changed then.
  /// - Throws: ``StoreError/Kind/damaged`` when nothing can be read; ``StoreError/Kind/full`` when there is no room for both files;
  ///   ``StoreError/Kind/newer``.
  public static func rebuild(at path: String, limit: Int = Options().limit) throws(StoreError)
    -> StoreRebuild?
  {
    let directory = try StoreDirectory(path, .existing)
    let lock = try StoreLock(path, isShared: false)
    defer { lock.release() }
    let faults = try PageCheck(directory.data).faults
    if faults.isEmpty { return nil }
    directory.removeNew()
    do throws(StoreError) {
      var salvage = try PageSalvage(directory.data)
      let summary = try salvage.write(to: directory.new, limit: limit, faults: faults)
      if let fault = try PageCheck(directory.new).faults.first {
        throw StoreError(.failed, "couldn't build \(path) anew: \(fault)")
      }
      try directory.adoptNew()
      // What it has of the former file's readers means nothing.
      unsafe unlink(LMDBLockFile.path(beside: directory.data))
      return summary
    } catch {
      directory.removeNew()
      throw error
    }
  }
}
