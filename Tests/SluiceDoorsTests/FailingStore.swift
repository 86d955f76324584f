import SluiceStore
import Synchronization

/// A store in memory whose commits fail while a test asks for it.
final class FailingStore: TopicStore {
  private let memory = MemoryStore()
  private let failure = Mutex<StoreError.Kind?>(nil)

  /// Sets the error with which all further commits fail; nil lets them succeed again.
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
