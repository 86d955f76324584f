import CLMDB
import Glibc
import SluiceStore
import Synchronization

/// An open file of LMDB's with its tables, and readers to lend.
///
/// After an error that LMDB calls fatal it is of no more use, and another one takes its place.
// @unchecked: LMDB's environment may be used by all threads; `spare` is a mutex, `isBroken` an atomic; the rest is constant.
@safe
final class LMDBEnvironment: @unchecked Sendable {
  /// So many may read at the same time.
  static let maximumReaders = 1022

  let pointer: OpaquePointer
  let tables: LMDBTables
  let path: String
  /// Bytes that the file may take.
  let limit: Int
  /// That this environment can't be used any longer.
  let isBroken = Atomic(false)

  private let spare = Mutex<[LMDBReader]>([])

  /// - Parameters:
  ///   - limit: bytes of address space, the most that the file may take. Halved down to 1 GiB when there isn't so much.
  ///   - isWritten: Otherwise nothing else may write to it, unless it is shared.
  ///   - isShared: LMDB keeps account of readers, so that another process may write meanwhile.
  ///   - prepare: runs in the transaction that opens the tables, a writing one if `isWritten`; returns them.
  init(
    path: String, limit: Int, isWritten: Bool, isShared: Bool = false,
    tables prepare: (LMDBTransaction) throws(StoreError) -> LMDBTables
  ) throws(StoreError) {
    self.path = path
    unsafe pointer = try unsafe Self.open(path, limit: limit, isWritten: isWritten, isShared: isShared)
    let facts = unsafe LMDBFacts(pointer)
    self.limit = facts.limit
    do throws(StoreError) {
      try Self.fill(facts, path, isWritten: isWritten, isShared: isShared)
      if isWritten {
        try LMDBMetaPage.check(path, lastCommit: facts.lastCommit, pageSize: facts.pageSize)
      }
      tables = try unsafe Self.transact(pointer, path, isReading: !isWritten, prepare)
    } catch {
      unsafe mdb_env_close(pointer)
      throw error
    }
  }

  deinit {
    spare.withLock { readers in
      for reader in readers { reader.end() }
      // Their cursors go before the environment does.
      readers = []
    }
    unsafe mdb_env_close(pointer)
  }

  private static func open(
    _ path: String, limit: Int, isWritten: Bool, isShared: Bool
  ) throws(StoreError) -> OpaquePointer {
    var flags = MDB_NOSUBDIR | MDB_NOTLS | MDB_NOMEMINIT
    if isWritten {
      try LMDBLockFile.allocate(beside: path)
    } else {
      flags |= isShared ? MDB_RDONLY : MDB_RDONLY | MDB_NOLOCK
      // On a medium that can't be written to LMDB does without.
      if isShared { try? LMDBLockFile.allocate(beside: path) }
    }
    let leastLimit = 1 << 30
    var limit = limit
    while true {
      var environment: OpaquePointer?
      var code = unsafe mdb_env_create(&environment)
      guard code == 0, let environment = unsafe environment else {
        throw StoreError(lmdb: code, "open", path)
      }
      unsafe mdb_env_set_maxdbs(environment, 8)
      unsafe mdb_env_set_maxreaders(environment, UInt32(maximumReaders))
      code = unsafe mdb_env_set_mapsize(environment, limit)
      if code == 0 { code = unsafe mdb_env_open(environment, path, UInt32(flags), 0o600) }
      if code == 0 {
        // A child process has no business with it.
        _ = unsafe fcntl(LMDBFacts(environment).descriptor, F_SETFD, FD_CLOEXEC)
        return unsafe environment
      }
      unsafe mdb_env_close(environment)
      // Not so much address space: the process, or the machine, has a limit for it.
      guard code == ENOMEM, limit > leastLimit else { throw StoreError(lmdb: code, "open", path) }
      limit = max(limit / 2, leastLimit)
    }
  }

  /// "LMDB 0.9.24": the version of the library that this process uses.
  static var libraryVersion: String {
    var (major, minor, patch): (Int32, Int32, Int32) = (0, 0, 0)
    _ = unsafe mdb_version(&major, &minor, &patch)
    return "LMDB \(major).\(minor).\(patch)"
  }

  /// Makes a file longer that ends before its last page, since reading behind the end would end the process. Such pages are either in no use,
  /// and were never written, or they were lost; then what is read there is damaged.
  private static func fill(
    _ facts: LMDBFacts, _ path: String, isWritten: Bool, isShared: Bool
  ) throws(StoreError) {
    var status = stat()
    guard unsafe fstat(facts.descriptor, &status) == 0 else {
      throw StoreError(errno: errno, "open", path)
    }
    guard Int(status.st_size) < facts.bytes else { return }
    // A broker that has it open has lengthened it, and nothing refers to pages that it hasn't written since.
    if isShared, StoreLock.isHeld(beside: path) { return }
    guard isWritten else {
      throw StoreError(
        .damaged,
        """
        \(path) has \(status.st_size) bytes and should have \(facts.bytes); if that is all there is of it, let the broker \
        open it, which takes what is missing for damaged
        """)
    }
    guard ftruncate(facts.descriptor, facts.bytes) == 0 else {
      throw StoreError(errno: errno, "lengthen", path)
    }
  }

  /// Has `body` read or make changes in one transaction; the changes are on disk when this returns.
  static func transact<Result>(
    _ environment: OpaquePointer, _ path: String, isReading: Bool,
    _ body: (LMDBTransaction) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    let attempt = isReading ? "read from" : "write to"
    var pointer: OpaquePointer?
    var code = unsafe mdb_txn_begin(environment, nil, isReading ? UInt32(MDB_RDONLY) : 0, &pointer)
    guard code == 0, let pointer = unsafe pointer else { throw StoreError(lmdb: code, attempt, path) }
    let result: Result
    do throws(StoreError) {
      result = try unsafe body(LMDBTransaction(pointer: pointer, path: path))
    } catch {
      unsafe mdb_txn_abort(pointer)
      throw error
    }
    code = unsafe mdb_txn_commit(pointer)
    guard code == 0 else { throw StoreError(lmdb: code, "write to", path) }
    return result
  }

  /// The open file.
  var descriptor: Int32 {
    var descriptor: Int32 = -1
    unsafe mdb_env_get_fd(pointer, &descriptor)
    return descriptor
  }

  /// Makes changes in one transaction, and has them on disk.
  func write<Result>(_ body: (LMDBTransaction) throws(StoreError) -> Result) throws(StoreError) -> Result {
    try unsafe Self.transact(pointer, path, isReading: false, body)
  }

  /// The current state of the file, by LMDB.
  var facts: LMDBFacts { unsafe LMDBFacts(pointer) }

  /// Has the disk set aside bytes behind the last page. Returns the system's error.
  func allocate(_ bytes: Int) -> Int32 {
    let facts = facts
    return posix_fallocate(facts.descriptor, facts.bytes, bytes)
  }

  /// The number of the last commit.
  var lastCommit: Int { facts.lastCommit }

  /// A reader that sees what was committed last; nil when the environment is broken. Return it with ``giveBack(_:)``, after a short time:
  /// pages that it can see aren't reused until then.
  func reader() throws(StoreError) -> LMDBReader? {
    guard !isBroken.load(ordering: .acquiring) else { return nil }
    let code: Int32
    if let reader = spare.withLock({ $0.popLast() }) {
      code = reader.renew()
      if code == 0 { return reader }
      reader.end()
    } else {
      var transaction: OpaquePointer?
      code = unsafe mdb_txn_begin(pointer, nil, UInt32(MDB_RDONLY), &transaction)
      if code == 0, let transaction = unsafe transaction {
        return unsafe try LMDBReader(LMDBTransaction(pointer: transaction, path: path), tables)
      }
    }
    guard code == MDB_PANIC else { throw StoreError(lmdb: code, "read from", path) }
    isBroken.store(true, ordering: .releasing)
    return nil
  }

  /// Frees the places of readers whose processes have ended without leaving them.
  func forgetDeadReaders() {
    var count: Int32 = 0
    _ = unsafe mdb_reader_check(pointer, &count)
  }

  /// Finds out whether the last error was a fatal one.
  func checkIfBroken() {
    if let reader = try? reader() { giveBack(reader) }
  }

  func giveBack(_ reader: LMDBReader) {
    reader.rest()
    spare.withLock { $0.append(reader) }
  }
}

/// LMDB's description of an open file.
struct LMDBFacts {
  /// Bytes that the file may take.
  let limit: Int
  let pageSize: Int
  /// Bytes up to the end of the last page.
  let bytes: Int
  /// The number of the last commit.
  let lastCommit: Int
  let descriptor: Int32

  init(_ environment: OpaquePointer) {
    var info = unsafe MDB_envinfo()
    var statistics = MDB_stat()
    var descriptor: Int32 = -1
    unsafe mdb_env_info(environment, &info)
    unsafe mdb_env_stat(environment, &statistics)
    unsafe mdb_env_get_fd(environment, &descriptor)
    self.descriptor = descriptor
    pageSize = Int(statistics.ms_psize)
    limit = unsafe Int(info.me_mapsize)
    lastCommit = unsafe Int(info.me_last_txnid)
    bytes = unsafe (Int(info.me_last_pgno) + 1) &* pageSize
  }
}

/// The tables of a store's file.
struct LMDBTables: Sendable {
  /// ``MetaKey``.
  var meta: LMDBTransaction.Table
  /// ``TopicKey`` → ``TopicEntry``.
  var topics: LMDBTransaction.Table
  /// ``BatchKey`` → a batch as ``BatchBlock`` has sealed it.
  var batches: LMDBTransaction.Table
  /// ``StateKey`` → the state's value.
  var states: LMDBTransaction.Table
  /// ``TopicKey`` of each topic that was deleted and may still have batches or states → nothing.
  var garbage: LMDBTransaction.Table

  /// - Parameter table: opens the table of that name.
  init(_ table: (String) throws(StoreError) -> LMDBTransaction.Table) throws(StoreError) {
    meta = try table("meta")
    topics = try table("topics")
    batches = try table("batches")
    states = try table("states")
    garbage = try table("garbage")
  }
}

/// Held by any number of users, or by one that changes what it guards. A user may take it again while it holds it.
// @unchecked: `lock` is the system's own lock, `changers` an atomic.
@safe
final class ReadWriteLock: @unchecked Sendable {
  private let lock: UnsafeMutablePointer<pthread_rwlock_t>
  /// Callers that wait for a change.
  private let changers = Atomic(0)

  init() {
    unsafe lock = .allocate(capacity: 1)
    unsafe pthread_rwlock_init(lock, nil)
  }

  deinit {
    unsafe pthread_rwlock_destroy(lock)
    unsafe lock.deallocate()
  }

  /// Users go first, so that they may take it again; but they give way for a moment, or a change would wait as long as there are any.
  func lockForUse() {
    if changers.load(ordering: .relaxed) > 0 { usleep(500) }
    unsafe pthread_rwlock_rdlock(lock)
  }

  func lockForChange() {
    changers.add(1, ordering: .relaxed)
    unsafe pthread_rwlock_wrlock(lock)
    changers.subtract(1, ordering: .relaxed)
  }

  func unlock() { unsafe pthread_rwlock_unlock(lock) }
}
