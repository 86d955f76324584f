import SluiceIO
import SluiceStore
import SluiceWire

/// A remote store that a test controls: commits are in progress until the test settles them.
// @unchecked: a simulation runs on one thread at a time.
final class PipelinedStore: ShardStore, @unchecked Sendable {
  let memory = MemoryStore()
  let depth: Int
  let commitBytes: Int
  private var events: (ShardStoreEvent) -> Void = { _ in }
  private(set) var underWay: [(number: UInt64, changes: [TopicChange])] = []
  /// The most commits in progress at a time.
  private(set) var deepest = 0
  /// The most bytes of records that a commit may have.
  var room = Int.max
  /// The topic whose records are rejected as invalid.
  var rejected: TopicID?
  var isFenced = false

  init(depth: Int, commitBytes: Int = 1 << 20) {
    self.depth = depth
    self.commitBytes = commitBytes
  }

  var limit: Int? { nil }
  var mostChanges: Int { 3 }
  var isBlocking: Bool { false }

  func begin(_ events: @escaping @Sendable (ShardStoreEvent) -> Void) { self.events = events }

  func commit(_ changes: [TopicChange], as number: UInt64) -> CommitOutcome {
    precondition(underWay.count < depth && changes.count <= mostChanges && !isFenced)
    if changes.contains(where: { $0.topic == rejected && !$0.batches.isEmpty }) {
      return .settled(StoreError(.invalid, "the records are in the hands of a test"))
    }
    underWay.append((number, changes))
    deepest = max(deepest, underWay.count)
    return .underWay
  }

  /// Settles the first commit in progress. If it fails, settles all of them.
  func settleFirst() throws {
    guard let first = underWay.first else { return }
    let bytes = first.changes.reduce(0) { $0 + $1.batches.reduce(0) { $0 + $1.bytes } }
    if bytes > room {
      let failed = underWay
      underWay = []
      for commit in failed { events(.settled(commit.number, StoreError(.full, "no room"))) }
      return
    }
    underWay.removeFirst()
    try memory.commit(first.changes)
    events(.settled(first.number, nil))
  }

  /// Reports that the outcome of commits in progress is unknown; nil to report that the store works again.
  func delay(_ error: StoreError?) { events(error.map { .delayed($0) } ?? .resumed) }

  /// Another owner takes over the shard.
  func fence() {
    isFenced = true
    events(.fenced(StoreError(.fenced, "another owner")))
  }

  func extent(of topic: TopicID) throws(StoreError) -> StoredExtent? { try memory.extent(of: topic) }

  func headers(of topic: TopicID, from offset: UInt64, _ body: (BatchHeader) -> Bool) throws(StoreError) {
    try LocalStore(memory).headers(of: topic, from: offset, body)
  }

  func read(
    _ topic: TopicID, from offset: UInt64, bytes: Int,
    each: @escaping @Sendable (UInt64, UnsafeRawBufferPointer) -> Bool,
    _ done: @escaping @Sendable (StoreError?) -> Void
  ) { LocalStore(memory).read(topic, from: offset, bytes: bytes, each: each, done) }

  func find(
    _ time: Int64, in topic: TopicID, within span: Range<UInt64>,
    _ done: @escaping @Sendable (Result<UInt64?, StoreError>) -> Void
  ) { LocalStore(memory).find(time, in: topic, within: span, done) }

  func reclaim() throws(StoreError) -> Bool { false }

  func size() throws(StoreError) -> StoreSize? { nil }

  func close(_ done: @escaping @Sendable (StoreError?) -> Void) { done(nil) }
}
