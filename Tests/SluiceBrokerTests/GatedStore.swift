import SluiceStore
import Synchronization
import TestSupport

/// A store in memory that a test controls: it can be slow, fail, and be cut off.
final class GatedStore: TopicStore {
  private struct State {
    var isOpen = true
    var error: StoreError?
    /// Whether the error applies only to commits with records.
    var isForRecordsOnly = false
    /// The most bytes of records that a commit may have.
    var room = Int.max
    var isCutOff = false
    /// The topic whose records are rejected as invalid.
    var rejected: TopicID?
    var waiting = 0
    var commits = 0
  }

  let memory: MemoryStore
  private let state = Mutex(State())

  /// The limit that it reports.
  let limit: Int?

  init(_ memory: MemoryStore = MemoryStore(), limit: Int? = nil) {
    self.memory = memory
    self.limit = limit
  }

  /// Makes commits wait.
  func hold() { state.withLock { $0.isOpen = false } }

  /// Lets waiting commits continue.
  func release() { state.withLock { $0.isOpen = true } }

  /// Makes commits fail; nil to let them succeed again.
  ///
  /// - Parameter recordsOnly: whether commits without records succeed.
  func fail(_ kind: StoreError.Kind?, recordsOnly: Bool = false) {
    state.withLock { state in
      state.error = kind.map { StoreError($0, "the disk is in the hands of a test") }
      state.isForRecordsOnly = recordsOnly
    }
  }

  /// Makes the store reject that topic's records as invalid.
  func reject(_ topic: TopicID) { state.withLock { $0.rejected = topic } }

  /// Makes commits with more bytes of records fail for lack of space.
  func limit(to bytes: Int) { state.withLock { $0.room = bytes } }

  /// Simulates a power loss: uncommitted changes are lost, and the store isn't closed.
  func cutOff() {
    state.withLock { state in
      state.isCutOff = true
      state.isOpen = true
    }
  }

  var commits: Int { state.withLock { $0.commits } }

  func waitForHeldCommit() throws {
    try eventually("a commit waits") { self.state.withLock { $0.waiting > 0 } }
  }

  func contents() throws(StoreError) -> StoreContents { try memory.contents() }

  func states(of topic: TopicID, _ kind: StoredState.Kind) throws(StoreError) -> [StoredState] {
    try memory.states(of: topic, kind)
  }

  func extent(of topic: TopicID) throws(StoreError) -> StoredExtent? { try memory.extent(of: topic) }

  func commit(_ changes: [TopicChange]) throws(StoreError) {
    state.withLock { $0.waiting += 1 }
    while !state.withLock({ $0.isOpen }) { pause(0.001) }
    let error = state.withLock { state -> StoreError? in
      state.waiting -= 1
      if state.isCutOff { return StoreError(.failed, "the power is off") }
      if changes.contains(where: { $0.topic == state.rejected && !$0.batches.isEmpty }) {
        return StoreError(.invalid, "the records are in the hands of a test")
      }
      if changes.reduce(0, { $0 + $1.batches.reduce(0) { $0 + $1.bytes } }) > state.room {
        return StoreError(.full, "the disk is in the hands of a test")
      }
      return state.isForRecordsOnly && changes.allSatisfy { $0.batches.isEmpty } ? nil : state.error
    }
    if let error { throw error }
    try memory.commit(changes)
    state.withLock { $0.commits += 1 }
  }

  func batches(
    of topic: TopicID, from offset: UInt64, _ body: (UInt64, UnsafeRawBufferPointer) -> Bool
  ) throws(StoreError) {
    try memory.batches(of: topic, from: offset, body)
  }

  /// Made-up sizes.
  func size() throws(StoreError) -> StoreSize? {
    StoreSize(files: 400, reusable: 100, limit: limit.map { UInt64($0) }, available: 5)
  }

  func reclaim() throws(StoreError) -> Bool { try memory.reclaim() }

  func close() throws(StoreError) {
    if !state.withLock({ $0.isCutOff }) { try memory.close() }
  }
}
