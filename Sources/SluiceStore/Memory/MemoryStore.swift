import SluiceWire
import Synchronization

/// A store in memory: for tests and simulations, in which it outlives its broker, and as the simplest engine.
public final class MemoryStore: TopicStore {
  struct Topic {
    var row: StoredTopic
    /// Why the row can't be read, for a store that was damaged.
    var rowFault: StoreError?
    var extent = StoredExtent()
    var isExtentLost = false
    /// In the order of their offsets.
    var batches: [(offset: UInt64, value: [UInt8])] = []
    var states: [StoredState.Kind: [[UInt8]: [UInt8]]] = [:]
    /// By keys that none has, for a store that was damaged.
    var strayStates: [[UInt8]: [UInt8]] = [:]

    /// The index of the batch that holds the record, or of the first one behind it.
    func index(holding offset: UInt64) -> Int {
      let next = batches.indices.partition { batches[$0].offset > offset }
      guard next > 0 else { return 0 }
      let (first, value) = batches[next - 1]
      return unsafe value.withUnsafeBytes { unsafe BatchHeader.isBehind(offset, $0, storedAt: first) }
        ? next : next - 1
    }
  }

  struct State {
    var topics: [TopicID: Topic] = [:]
    /// Being loaded, and not shown yet.
    var prepared: [TopicID: Topic] = [:]
    /// Without a row, for a store that was damaged.
    var strays: [TopicID: Topic] = [:]
    var nextTopic = TopicID(rawValue: 1)
    var wasClosed = true
  }

  let state = Mutex(State())

  public init() {}

  public func contents() throws(StoreError) -> StoreContents {
    state.withLock { state in
      StoreContents(
        topics: state.topics.map { .init(id: $0, row: $1.row, extent: $1.extent) }.sorted { $0.id < $1.id },
        nextTopic: state.nextTopic, wasClosed: state.wasClosed)
    }
  }

  public func states(of topic: TopicID, _ kind: StoredState.Kind) throws(StoreError) -> [StoredState] {
    state.withLock { state in
      (state.topics[topic]?.states[kind] ?? [:])
        .map { StoredState(kind, key: $0, value: $1) }
        .sorted { $0.key.lexicographicallyPrecedes($1.key) }
    }
  }

  public func extent(of topic: TopicID) throws(StoreError) -> StoredExtent? {
    state.withLock { $0.topics[topic]?.extent }
  }

  public func commit(_ changes: [TopicChange]) throws(StoreError) {
    try state.withLock { state throws(StoreError) in
      var next = state
      for change in changes { try Self.apply(change, to: &next) }
      next.wasClosed = false
      state = next
    }
  }

  private static func apply(_ change: TopicChange, to state: inout State) throws(StoreError) {
    state.nextTopic = max(state.nextTopic, TopicID(rawValue: change.topic.rawValue + 1))
    if change.isDeletion {
      state.topics[change.topic] = nil
      return
    }
    guard var topic = state.topics[change.topic] ?? change.row.map({ Topic(row: $0) }) else {
      throw StoreError(
        .invalid, "topic \(change.topic.rawValue) doesn't exist, and the change has no row for it")
    }
    if let row = change.row { topic.row = row }
    for batch in change.batches {
      try topic.extent.append(batch, in: "")
      unsafe topic.batches.append((batch.firstOffset, Array(batch.value)))
    }
    if let violation = change.states.lazy.compactMap(\.violation).first { throw violation }
    for state in change.states { topic.states[state.kind, default: [:]][state.key] = state.value }
    if let offset = change.truncateBefore { truncate(&topic, before: offset) }
    state.topics[change.topic] = topic
  }

  private static func truncate(_ topic: inout Topic, before offset: UInt64) {
    var dropped = 0
    while dropped < topic.batches.count {
      let end = dropped + 1 < topic.batches.count ? topic.batches[dropped + 1].offset : topic.extent.head
      guard end <= offset else { break }
      dropped += 1
    }
    guard dropped > 0 else { return }
    topic.batches.removeFirst(dropped)
    topic.extent.firstOffset = topic.batches.first?.offset ?? topic.extent.head
    // A damaged batch may say anything.
    let header = topic.batches.first.flatMap { first in
      unsafe first.value.withUnsafeBytes { unsafe BatchHeader($0) }
    }
    topic.extent.bytesBefore = min(header?.bytesBefore ?? .max, topic.extent.bytesThrough)
  }

  public func batches(
    of topic: TopicID, from offset: UInt64, _ body: (UInt64, UnsafeRawBufferPointer) -> Bool
  ) throws(StoreError) {
    let found = state.withLock { state -> ArraySlice<(offset: UInt64, value: [UInt8])> in
      guard let topic = state.topics[topic], offset < topic.extent.head else { return [] }
      return topic.batches[topic.index(holding: offset)...]
    }
    for batch in found {
      guard unsafe batch.value.withUnsafeBytes({ unsafe body(batch.offset, $0) }) else { return }
    }
  }

  public func reclaim() throws(StoreError) -> Bool { false }

  public func close() throws(StoreError) {
    state.withLock { $0.wasClosed = true }
  }

  /// Puts other bytes in the place of a stored batch, as a faulty disk does.
  package func damage(_ topic: TopicID, batchAt offset: UInt64, _ change: (inout [UInt8]) -> Void) {
    state.withLock { state in
      guard let index = state.topics[topic]?.batches.firstIndex(where: { $0.offset == offset })
      else { return }
      change(&state.topics[topic]!.batches[index].value)
    }
  }
}
