import SluiceStore
import Synchronization

/// A store in memory that refuses commits while a test says so.
final class FailingStore: TopicStore {
  private let memory = MemoryStore()
  private let failure = Mutex<StoreError.Kind?>(nil)

  /// Commits fail from now on; nil for no longer.
  func fail(_ kind: StoreError.Kind?) { failure.withLock { $0 = kind } }

  func contents() throws(StoreError) -> StoreContents { try memory.contents() }

  func states(of topic: TopicID, _ kind: StoredState.Kind) throws(StoreError) -> [StoredState] {
    try memory.states(of: topic, kind)
  }

  func extent(of topic: TopicID) throws(StoreError) -> StoredExtent? { try memory.extent(of: topic) }

  func commit(_ changes: [TopicChange]) throws(StoreError) {
    if let kind = failure.withLock(\.self) { throw StoreError(kind, "the disk is in the hands of a test") }
    try memory.commit(changes)
  }

  func batches(
    of topic: TopicID, from offset: UInt64, _ body: (UInt64, UnsafeRawBufferPointer) -> Bool
  ) throws(StoreError) {
    try memory.batches(of: topic, from: offset, body)
  }

  func reclaim() throws(StoreError) -> Bool { try memory.reclaim() }

  func close() throws(StoreError) { try memory.close() }
}
