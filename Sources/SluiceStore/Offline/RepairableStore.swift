/// A store that can be inspected and repaired while no other process uses it: its content, readable or not.
///
/// All calls may block on a disk, and come from one thread at a time.
public protocol RepairableStore: TopicStore {
  /// Returns what the store has. Unlike ``TopicStore/contents()`` it accepts data that can't be decoded.
  func inspection() throws(StoreError) -> StoreInspection

  /// Hands out the batches of a topic as ``TopicStore/batches(of:from:_:)`` does, but all of them, whatever its extent says.
  func rawBatches(of topic: TopicID, _ body: (UInt64, UnsafeRawBufferPointer) -> Bool) throws(StoreError)

  /// Hands out the states of a topic as they are stored, in the order of their keys, until `body` returns false.
  func rawStates(of topic: TopicID, _ body: (RawState) -> Bool) throws(StoreError)

  /// Applies all of a repair, or nothing of it: it is on disk when this returns. The topic's number isn't assigned again.
  func mend(_ repair: TopicRepair) throws(StoreError)
}

/// The contents of a store, readable or not.
public struct StoreInspection: Sendable {
  public struct Topic: Sendable {
    public var id: TopicID
    /// The row, or why it can't be read.
    public var row: Result<StoredTopic, StoreError>
    /// Nil when there is none, or it can't be read.
    public var extent: StoredExtent?

    public init(id: TopicID, row: Result<StoredTopic, StoreError>, extent: StoredExtent?) {
      self.id = id
      self.row = row
      self.extent = extent
    }

    /// Nil when the row can't be read.
    public var name: String? { try? row.get().name }
  }

  /// In the order of their numbers.
  public var topics: [Topic]
  /// Numbers with batches or states that belong to no topic, and to no deleted one.
  public var strays: [TopicID]
  /// Larger than every number that was ever assigned, as far as that can be read.
  public var nextTopic: TopicID
  /// Whether the store was closed after its last use.
  public var wasClosed: Bool
  public var size: StoreSize

  public init(topics: [Topic], strays: [TopicID], nextTopic: TopicID, wasClosed: Bool, size: StoreSize) {
    self.topics = topics
    self.strays = strays
    self.nextTopic = nextTopic
    self.wasClosed = wasClosed
    self.size = size
  }
}

/// A topic's state as it is stored.
public struct RawState: Hashable, Sendable {
  /// The kind's number and the state's own key, if it isn't damaged.
  public var key: [UInt8]
  public var value: [UInt8]

  public init(key: [UInt8], value: [UInt8]) {
    self.key = key
    self.value = value
  }

  /// Nil when no state has such a key.
  public var state: StoredState? {
    guard let first = key.first, let kind = StoredState.Kind(rawValue: first), (2...256).contains(key.count)
    else { return nil }
    return StoredState(kind, key: Array(key.dropFirst()), value: value)
  }
}

/// The changes that make a damaged topic usable.
public struct TopicRepair: Hashable, Sendable {
  public var topic: TopicID
  /// The offsets of batches to remove.
  public var batches: [UInt64] = []
  /// The keys of states to remove, as ``RawState`` has them.
  public var states: [[UInt8]] = []
  /// The new extent; nil to leave it unchanged.
  public var extent: StoredExtent?
  /// The new row; nil to leave it unchanged.
  public var row: StoredTopic?
  /// Removes everything under the topic's number. The other properties are ignored then.
  public var isRemoval = false

  public init(_ topic: TopicID) {
    self.topic = topic
  }

  public var isEmpty: Bool {
    batches.isEmpty && states.isEmpty && extent == nil && row == nil && !isRemoval
  }
}

/// A store into which topics can be loaded piece by piece, and which shows them once they are whole.
///
/// All calls may block on a disk, and come from one thread at a time.
public protocol LoadableStore: RepairableStore {
  /// Returns a number for a new topic. If the process ends before ``adopt(_:)``, what was loaded under it is removed like a
  /// deleted topic.
  func prepareTopic() throws(StoreError) -> TopicID

  /// Stores batches and states under a prepared number: all of them, or none.
  func load(_ batches: [LoadedBatch], _ states: [StoredState], into topic: TopicID) throws(StoreError)

  /// Turns what was loaded into topics, all at once: they are on disk when this returns.
  func adopt(_ topics: [LoadedTopic]) throws(StoreError)

  /// Removes what was loaded under a prepared number.
  func discard(_ topic: TopicID) throws(StoreError)
}

extension StoreError {
  package static func notPrepared(_ topic: TopicID) -> StoreError {
    StoreError(.failed, "topic number \(topic.rawValue) wasn't prepared")
  }
}

/// A batch for a store, sealed for the topic that it goes to.
public struct LoadedBatch: Sendable {
  public var firstOffset: UInt64
  /// As it is stored: header and items.
  public var value: [UInt8]

  public init(firstOffset: UInt64, value: [UInt8]) {
    self.firstOffset = firstOffset
    self.value = value
  }
}

/// A topic all of whose batches and states are loaded.
public struct LoadedTopic: Sendable {
  public var id: TopicID
  public var row: StoredTopic
  public var extent: StoredExtent
  /// A topic that is deleted in the same commit.
  public var replaced: TopicID?

  public init(id: TopicID, row: StoredTopic, extent: StoredExtent, replaced: TopicID? = nil) {
    self.id = id
    self.row = row
    self.extent = extent
    self.replaced = replaced
  }
}
