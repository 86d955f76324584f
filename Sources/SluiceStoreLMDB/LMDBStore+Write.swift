import CLMDB
import Glibc
import SluiceStore
import Synchronization

extension LMDBStore {
  /// As `TopicStore` says. To keep the commit short, it drops only some of the batches before `TopicChange.truncateBefore`: at least twice as
  /// many as are added to the topic. Later commits drop the rest.
  public func commit(_ changes: [TopicChange]) throws(StoreError) {
    let takes = changes.contains { !$0.batches.isEmpty }
    let frees = changes.contains { $0.truncateBefore != nil }
    let bytes = changes.reduce(0) { sum, change in
      let states = change.states.reduce(0) { $0 + ($1.value?.count ?? 0) }
      return change.batches.reduce(sum + states) { $0 + $1.bytes }
    }
    try write(!takes ? .frees : frees ? .takesAndFrees : .takes, bytes: bytes) {
      transaction, tables throws(StoreError) in
      var writer = try LMDBWriter(transaction, tables)
      for change in changes { try writer.apply(change) }
      try writer.finish(isMarkedOpen: isMarkedOpen)
    }
    isMarkedOpen = true
  }

  func markClosed() throws(StoreError) {
    try write(.frees) { transaction, tables throws(StoreError) in
      let closed: UInt8? = try transaction.number(tables.meta, .closed)
      if closed != 1 { try transaction.put(number: UInt8(1), tables.meta, .closed) }
    }
    isMarkedOpen = false
  }

  public func reclaim() throws(StoreError) -> Bool {
    let isEmpty = try read { reader throws(StoreError) in
      try unsafe LMDBCursor(reader.tables.garbage, in: reader.transaction).last() == nil
    }
    if isEmpty { return false }
    return try write(.frees) { transaction, tables throws(StoreError) in
      let writer = try LMDBWriter(transaction, tables)
      return try writer.reclaim()
    }
  }
}

extension LMDBStore {
  /// Bytes beyond the limit in which only what gives back space may be written: to a copy-on-write tree that takes space first.
  static let reserve = 4 << 20

  /// The approximate size of a commit besides batches.
  private static let treeBytes = 256 << 10

  /// The result of one attempt.
  private enum Outcome<Result> {
    case done(Result)
    /// LMDB's or the system's error. The file is as before.
    case failed(Int32)
  }

  /// The effect of a commit on the free space.
  enum Effect {
    case takes
    case takesAndFrees
    case frees
  }

  /// Makes the changes of `body` in one transaction, and has them on disk.
  ///
  /// - Parameter bytes: About how many will be written, besides pages of the tree.
  func write<Result>(
    _ effect: Effect, bytes: Int = 0, _ body: (LMDBTransaction, LMDBTables) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    guard options.access.isWriting else {
      throw StoreError(.failed, "couldn't write to \(directory.data): it was opened for reading only")
    }
    try checkPlace()
    let result = try writeOrMakeRoom(effect, bytes, body)
    if effect != .takes { lastFreeingCommit = lastCommit }
    return result
  }

  private func writeOrMakeRoom<Result>(
    _ effect: Effect, _ bytes: Int, _ body: (LMDBTransaction, LMDBTables) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    do throws(StoreError) {
      if effect != .frees { try leaveReserve(bytes) }
      return try writeTwice(bytes, body)
    } catch {
      guard error.kind == .full, effect == .frees || lastFreeingCommit == lastCommit else { throw error }
    }
    if effect != .frees {
      // The previous commit still uses the space that the last commit freed: another commit is needed.
      try writeOrMakeRoom(.frees, 0) { transaction, tables throws(StoreError) in
        try transaction.put(number: UInt8(0), tables.meta, .closed)
      }
      isMarkedOpen = true
      try leaveReserve(bytes)
      return try writeTwice(bytes, body)
    }
    try exceedLimit(by: Self.reserve)
    directory.reserve.giveBack()
    defer {
      hasReserve = directory.reserve.take()
      try? exceedLimit(by: 0)
    }
    return try writeTwice(bytes, body)
  }

  /// Refuses to take the last of the space on a full disk: as much as the reserve should have must be free in the file then.
  private func leaveReserve(_ bytes: Int) throws(StoreError) {
    if hasReserve { return }
    hasReserve = directory.reserve.take()
    if hasReserve { return }
    let free = try read { reader throws(StoreError) in try reader.transaction.freeBytes() }
    guard free >= bytes + Self.treeBytes + DiskReserve.bytes else {
      throw StoreError(lmdb: ENOSPC, "write to", directory.data)
    }
  }

  /// A write that the disk has taken only a part of is EIO for LMDB. So the space is allocated then, which shows whether there is any, and
  /// everything is written again: no data of a failed sync is relied on.
  private func writeTwice<Result>(
    _ bytes: Int, _ body: (LMDBTransaction, LMDBTables) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    var outcome = try attempt(body)
    if case .failed(EIO) = outcome {
      let code = try use { environment in environment.allocate(bytes + Self.treeBytes) }
      if code == ENOSPC || code == EDQUOT { throw StoreError(lmdb: code, "write to", directory.data) }
      outcome = try attempt(body)
    }
    switch outcome {
    case .done(let result): return result
    case .failed(let code): throw StoreError(lmdb: code, "write to", directory.data)
    }
  }

  private func attempt<Result>(
    _ body: (LMDBTransaction, LMDBTables) throws(StoreError) -> Result
  ) throws(StoreError) -> Outcome<Result> {
    let outcome = try use { environment throws(StoreError) -> Outcome<Result>? in
      if needsSync {
        try LMDBMetaPage.forgetCommits(after: lastCommit, in: directory.data, forDisk: true)
        let code = unsafe mdb_env_sync(environment.pointer, 1)
        guard code == 0 else { throw StoreError(lmdb: code, "sync", directory.data) }
        needsSync = false
      }
      var pointer: OpaquePointer?
      let code = unsafe mdb_txn_begin(environment.pointer, nil, 0, &pointer)
      if code == MDB_PANIC {
        environment.isBroken.store(true, ordering: .releasing)
        return nil
      }
      guard code == 0, let pointer = unsafe pointer else {
        throw StoreError(lmdb: code, "write to", directory.data)
      }
      let result: Result
      do throws(StoreError) {
        result = try unsafe body(LMDBTransaction(pointer: pointer, path: directory.data), environment.tables)
      } catch {
        unsafe mdb_txn_abort(pointer)
        throw error
      }
      return unsafe commit(pointer, environment).map(Outcome.failed) ?? .done(result)
    }
    // Readers shall not have to wait for the next commit.
    if case .failed = outcome { try? replaceBroken() }
    return outcome
  }

  /// Returns LMDB's code when it fails.
  private func commit(_ transaction: OpaquePointer, _ environment: LMDBEnvironment) -> Int32? {
    let code = unsafe mdb_txn_commit(transaction)
    guard code != 0 else {
      // Not the transaction's own number: when there was nothing to write it wasn't given.
      lastCommit = environment.lastCommit
      return nil
    }
    environment.checkIfBroken()
    return code
  }
}
