import SluiceStore
import Synchronization
import TestSupport

/// A store in memory whose disk a test has in its hands: it can be slow, fail, and be cut off.
final class GatedStore: TopicStore {
  private struct State {
    var isOpen = true
    var error: StoreError?
    /// Whether only records find no room.
    var isForRecordsOnly = false
    /// Bytes of records for which there is room in one commit.
    var room = Int.max
    var isCutOff = false
    /// Whose records are refused for what they are.
    var rejected: TopicID?
    var waiting = 0
    var commits = 0
  }

  let memory: MemoryStore
  private let state = Mutex(State())

  /// What it says that it may take.
  let limit: Int?

  init(_ memory: MemoryStore = MemoryStore(), limit: Int? = nil) {
    self.memory = memory
    self.limit = limit
  }

  /// Commits wait from now on.
  func hold() { state.withLock { $0.isOpen = false } }

  /// They go on.
  func release() { state.withLock { $0.isOpen = true } }

  /// Commits fail from now on; nil for no longer.
  ///
  /// - Parameter recordsOnly: those without records succeed.
  func fail(_ kind: StoreError.Kind?, recordsOnly: Bool = false) {
    state.withLock { state in
      state.error = kind.map { StoreError($0, "the disk is in the hands of a test") }
      state.isForRecordsOnly = recordsOnly
    }
  }

  /// Records of that topic are refused from now on, for what they are.
  func reject(_ topic: TopicID) { state.withLock { $0.rejected = topic } }

  /// Commits of more bytes of records than that find no room from now on.
  func limit(to bytes: Int) { state.withLock { $0.room = bytes } }

  /// The power goes: what wasn't committed never is, and the store isn't closed.
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

  /// Made up.
  func size() throws(StoreError) -> StoreSize? {
    StoreSize(files: 400, reusable: 100, limit: limit.map { UInt64($0) }, available: 5)
  }

  func reclaim() throws(StoreError) -> Bool { try memory.reclaim() }

  func close() throws(StoreError) {
    if !state.withLock({ $0.isCutOff }) { try memory.close() }
  }
}
