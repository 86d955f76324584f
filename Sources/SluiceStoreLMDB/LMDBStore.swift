import CLMDB
import Glibc
import SluiceStore
import Synchronization

/// A store of topics in a file of LMDB: a copy-on-write B+ tree, read through a memory map.
///
/// A commit is written and synced with two calls, and needs no recovery, since it never overwrites committed data. The file grows up to the limit
/// and never shrinks; freed space is used again.
///
/// Records that the disk can't read are reported as damaged. A page of the tree that the disk can't read ends the process, since pages are read through
/// the memory map; so may a page with damaged contents.
// @unchecked: `gate` protects `environment`, `isClosed`, and what replaces a broken environment, on any thread: `lastCommit` and `needsSync`, which the thread that
// commits changes while it holds `gate` for use. `snapshot` belongs to the one thread that uses such a store; the rest of what changes, to the thread that commits.
public final class LMDBStore: TopicStore, @unchecked Sendable {
  public enum Access: Hashable, Sendable {
    /// Creates a store if there is none.
    case create
    /// There must be one.
    case existing
    /// There must be one. Nothing is written, and other processes may read it at the same time.
    case readOnly
    /// There must be one, which a broker in another process may have open, now or later. It sees only one commit; space that the broker frees isn't
    /// reused until the store is closed. The process must not have the store open besides, and one thread at a time uses it.
    case snapshot

    /// Whether something is written.
    var isWriting: Bool { self == .create || self == .existing }
  }

  public struct Options: Sendable {
    /// Bytes of address space that are reserved: the most that the store may take. If there isn't so much it is halved, down to 1 GiB.
    public var limit = 1 << 40
    public var access = Access.create

    public init() {}
  }

  public var limit: Int? { options.limit }

  let directory: StoreDirectory
  let options: Options
  private let schema: LMDBSchema
  /// Nil for a snapshot, which LMDB's table of readers protects.
  private let lock: StoreLock?
  /// For a snapshot: the transaction of all reads.
  private(set) var snapshot: LMDBReader?

  private let gate = ReadWriteLock()
  /// Nil after a fatal error until it is opened again; and once the store is closed.
  private var environment: LMDBEnvironment?
  private var isClosed = false
  /// The number of the last commit that is known to have succeeded.
  var lastCommit: Int
  /// The number of the last commit that freed space.
  var lastFreeingCommit = 0
  /// Whether there is reserved space, which a commit that frees space needs.
  var hasReserve: Bool
  /// Whether the disk may differ from what the file's pages in memory say, after a fault.
  var needsSync = false

  /// Whether the store had been closed when it was opened.
  let wasClosed: Bool
  /// Whether the file is marked as open.
  var isMarkedOpen: Bool

  /// Opens the store in a directory, which belongs to it alone; its path's parent must be there.
  ///
  /// - Throws: `StoreError.Kind.notAStore` for a directory that has something else or nothing, `StoreError.Kind.inUse`,
  ///   `StoreError.Kind.newer`, `StoreError.Kind.damaged`; and what the system says.
  public static func open(
    at directory: String, _ options: Options = Options()
  ) throws(StoreError) -> LMDBStore {
    try LMDBStore(directory, options, .current)
  }

  init(_ path: String, _ options: Options, _ schema: LMDBSchema) throws(StoreError) {
    self.options = options
    self.schema = schema
    directory = try StoreDirectory(path, isCreating: options.access == .create)
    lock = options.access == .snapshot ? nil : try StoreLock(path, isShared: options.access == .readOnly)
    // Of one that wasn't finished, a new one or a compacted copy, nothing is of use.
    if options.access.isWriting { directory.removeNew() }
    if options.access == .create, !directory.hasData { try Self.create(directory, options, schema) }
    let environment = try Self.environment(directory, options, schema)
    hasReserve = !options.access.isWriting || directory.reserve.take()
    lastCommit = environment.lastCommit
    guard let reader = try environment.reader() else {
      throw StoreError(lmdb: MDB_PANIC, "read from", directory.data)
    }
    defer { if options.access != .snapshot { environment.giveBack(reader) } }
    let closed: UInt8? = try reader.transaction.number(reader.tables.meta, .closed)
    wasClosed = closed == 1
    isMarkedOpen = closed != 1
    self.environment = environment
    if options.access == .snapshot { snapshot = reader }
  }

  /// Creates it under another name, so that no incomplete store is ever found.
  private static func create(
    _ directory: StoreDirectory, _ options: Options, _ schema: LMDBSchema
  ) throws(StoreError) {
    do throws(StoreError) {
      _ = try LMDBEnvironment(path: directory.new, limit: options.limit, isWritten: true) {
        transaction throws(StoreError) in try schema.create(in: transaction)
      }
    } catch {
      directory.removeNew()
      throw error
    }
    try directory.adoptNew()
  }

  private static func environment(
    _ directory: StoreDirectory, _ options: Options, _ schema: LMDBSchema
  ) throws(StoreError) -> LMDBEnvironment {
    let isWritten = options.access.isWriting
    return try LMDBEnvironment(
      path: directory.data, limit: options.limit, isWritten: isWritten, isShared: options.access == .snapshot
    ) { transaction throws(StoreError) in
      try schema.open(in: transaction, isWritten: isWritten)
    }
  }

  /// Calls `body` with the environment, which stays open meanwhile. Replaces a broken one before that, or after `body` returned nil.
  func use<Result>(_ body: (LMDBEnvironment) throws(StoreError) -> Result?) throws(StoreError) -> Result {
    while true {
      do {
        gate.lockForUse()
        defer { gate.unlock() }
        if let environment, !environment.isBroken.load(ordering: .acquiring),
          let result = try body(environment)
        {
          return result
        }
      }
      try replaceBroken()
    }
  }

  /// Opens the file again after an error that LMDB calls fatal, once nothing uses it any longer.
  func replaceBroken() throws(StoreError) {
    gate.lockForChange()
    defer { gate.unlock() }
    guard environment?.isBroken.load(ordering: .acquiring) ?? true else { return }
    guard !isClosed else { throw StoreError(.failed, "the store at \(directory.path) was closed") }
    environment = nil
    needsSync = true
    try LMDBMetaPage.forgetCommits(after: lastCommit, in: directory.data, forDisk: false)
    environment = try Self.environment(directory, options, schema)
  }

  /// Lets the file have so many bytes more than its limit, once nothing uses it.
  func exceedLimit(by bytes: Int) throws(StoreError) {
    gate.lockForChange()
    defer { gate.unlock() }
    guard let environment else { return }
    let code = unsafe mdb_env_set_mapsize(environment.pointer, environment.limit + bytes)
    guard code == 0 else {
      environment.isBroken.store(true, ordering: .releasing)
      throw StoreError(lmdb: code, "map", directory.data)
    }
  }

  /// As `TopicStore` says. Records that go into a file without a name are gone with the process, and another broker can start in the same directory.
  public func checkPlace() throws(StoreError) {
    let isThere = try use { environment in
      lock?.isIn(directory) ?? true && directory.data.names(environment.descriptor)
    }
    guard isThere else {
      throw StoreError(
        .removed,
        "the store at \(directory.path) was removed, or another put in its place, while the broker uses it: move it back, or stop the broker, restore a backup and start it again"
      )
    }
  }

  public func close() throws(StoreError) {
    if options.access.isWriting { try markClosed() }
    gate.lockForChange()
    defer { gate.unlock() }
    snapshot?.end()
    // Its cursor goes before the environment does.
    snapshot = nil
    environment = nil
    isClosed = true
    lock?.release()
  }
}
