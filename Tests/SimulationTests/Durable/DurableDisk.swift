import SluiceIO
import Synchronization

@testable import SluiceStore

/// A disk in memory that outlives brokers and can fail.
// @unchecked: a simulation runs on one thread at a time.
final class DurableDisk: @unchecked Sendable {
  /// The result of commits.
  enum Health: Hashable {
    case good
    case full
    case failing
  }

  private(set) var store: any TopicStore
  /// Receives each set of changes once it is on disk.
  var whenCommitted: ([TopicChange]) -> Void = { _ in }
  var health = Health.good
  /// Whether some commits succeed despite bad health.
  var isFlaky = false
  /// Crashes the broker in its next commit, before or after the changes are on disk.
  var crashInCommit: (isOnDisk: Bool, crash: () -> Void)?
  /// A fault that a test plants for the oracle to find.
  enum Flaw: CaseIterable {
    /// Some commits are lost.
    case losesCommits
    /// A store reports an orderly close although its broker was killed.
    case saysClosed
    /// The state of producers, cursors, or terminal events is never stored.
    case losesProducers
    case losesCursors
    case losesEndings
    /// Records are altered.
    case damages
    /// Reads start one batch too late.
    case skips
  }

  var flaw: Flaw?
  private(set) var wasClosed = true
  fileprivate var random: SeededRandom
  private(set) var failedCommits = 0

  /// - Parameter store: outlives the disk's brokers, which don't close it.
  init(seed: UInt64, store: any TopicStore = MemoryStore()) {
    self.store = store
    random = SeededRandom(seed: seed &* 0x632b_e5ab)
  }

  /// The contents of the disk at one moment.
  struct Copy {
    fileprivate var state: MemoryStore.State
    fileprivate var wasClosed: Bool
  }

  /// The store of a disk in memory.
  var memory: MemoryStore {
    guard let memory = store as? MemoryStore else { fatalError("the disk's store isn't in memory") }
    return memory
  }

  /// Copies a disk in memory.
  func copy() -> Copy { Copy(state: memory.state.withLock { $0 }, wasClosed: wasClosed) }

  /// Replaces the contents with a copy. Call it while no broker runs.
  func put(back copy: Copy) {
    let memory = MemoryStore()
    memory.state.withLock { $0 = copy.state }
    store = memory
    wasClosed = copy.wasClosed
  }

  /// Replaces the contents with an empty store. Call it while no broker runs.
  func clear() {
    store = MemoryStore()
    wasClosed = true
  }

  /// The disk as a newly started broker sees it.
  func open() -> OpenedDisk { OpenedDisk(self, wasClosed: wasClosed || flaw == .saysClosed) }

  fileprivate func closed() { wasClosed = true }

  fileprivate func commit(_ changes: [TopicChange]) throws(StoreError) {
    if health != .good, !isFlaky || random.oneIn(2) {
      failedCommits += 1
      throw health == .full
        ? StoreError(.full, "the disk is full") : StoreError(.failed, "the disk doesn't work")
    }
    if let last = crashInCommit {
      crashInCommit = nil
      if last.isOnDisk { try apply(changes) }
      last.crash()
      throw StoreError(.failed, "the process is no more")
    }
    if flaw == .losesCommits, random.oneIn(10) { return }
    try apply(changes)
  }

  private func apply(_ changes: [TopicChange]) throws(StoreError) {
    try store.commit(flawed(changes))
    if flaw == .damages, let change = changes.first, let batch = change.batches.first, random.oneIn(4) {
      (store as? MemoryStore)?.damage(change.topic, batchAt: batch.firstOffset) { $0[$0.count - 1] ^= 1 }
    }
    // Opening a store may leave it unchanged.
    wasClosed = false
    whenCommitted(changes)
  }

  private func flawed(_ changes: [TopicChange]) -> [TopicChange] {
    changes.map { change in
      var change = change
      switch flaw {
      case .losesProducers: change.states.removeAll { $0.kind == .producer }
      case .losesCursors: change.states.removeAll { $0.kind == .cursor }
      case .losesEndings: change.row?.ending = nil
      default: break
      }
      return change
    }
  }
}

/// A ``DurableDisk`` opened by one broker; unusable once that broker is dead.
// @unchecked: a simulation runs on one thread at a time.
final class OpenedDisk: TopicStore, @unchecked Sendable {
  private let disk: DurableDisk
  private let wasClosed: Bool
  private var isDead = false

  fileprivate init(_ disk: DurableDisk, wasClosed: Bool) {
    self.disk = disk
    self.wasClosed = wasClosed
  }

  /// The broker's process was killed.
  func die() { isDead = true }

  private func use() throws(StoreError) {
    if isDead { throw StoreError(.failed, "the process is no more") }
  }

  func contents() throws(StoreError) -> StoreContents {
    try use()
    var contents = try disk.store.contents()
    contents.wasClosed = wasClosed
    return contents
  }

  func states(of topic: TopicID, _ kind: StoredState.Kind) throws(StoreError) -> [StoredState] {
    try use()
    return try disk.store.states(of: topic, kind)
  }

  func extent(of topic: TopicID) throws(StoreError) -> StoredExtent? {
    try use()
    return try disk.store.extent(of: topic)
  }

  func commit(_ changes: [TopicChange]) throws(StoreError) {
    try use()
    try disk.commit(changes)
  }

  func batches(
    of topic: TopicID, from offset: UInt64, _ body: (UInt64, UnsafeRawBufferPointer) -> Bool
  ) throws(StoreError) {
    try use()
    if disk.health == .failing, disk.random.oneIn(3) {
      throw StoreError(.failed, "the disk can't be read")
    }
    var skips = disk.flaw == .skips && disk.random.oneIn(4)
    try disk.store.batches(of: topic, from: offset) { first, bytes in
      if skips {
        skips = false
        return true
      }
      return body(first, bytes)
    }
  }

  func reclaim() throws(StoreError) -> Bool {
    try use()
    return try disk.store.reclaim()
  }

  func close() throws(StoreError) {
    try use()
    isDead = true
    disk.closed()
  }
}
