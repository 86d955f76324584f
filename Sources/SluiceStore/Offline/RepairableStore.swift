/// A store that can be inspected and repaired while nothing else uses it: what it holds, readable or not.
///
/// All calls may block on a disk, and come from one thread at a time.
public protocol RepairableStore: TopicStore {
  /// What there is, without any judgement: unlike ``TopicStore/contents()`` it fails for nothing that can't be decoded.
  func inspection() throws(StoreError) -> StoreInspection

  /// Hands out the batches of a topic as ``TopicStore/batches(of:from:_:)`` does, but all that lie there, whatever its extent says.
  func rawBatches(
    of topic: TopicID, _ body: (UInt64, UnsafeRawBufferPointer) -> Bool
  ) throws(StoreError)

  /// Hands out the small states of a topic as they lie there, in the order of their keys, until `body` wants no more.
  func rawStates(of topic: TopicID, _ body: (RawState) -> Bool) throws(StoreError)

  /// Does all of a repair, or nothing of it: it is on disk when this returns. The topic's number isn't given again.
  func mend(_ repair: TopicRepair) throws(StoreError)
}

/// What lies in a store.
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
  /// Numbers under which there are batches or states, and which neither a topic has nor one that was deleted.
  public var strays: [TopicID]
  /// Larger than every number that was ever given, as far as that can be read.
  public var nextTopic: TopicID
  /// Whether it was closed in order when it was used last.
  public var wasClosed: Bool
  public var size: StoreSize

  public init(
    topics: [Topic], strays: [TopicID], nextTopic: TopicID, wasClosed: Bool, size: StoreSize
  ) {
    self.topics = topics
    self.strays = strays
    self.nextTopic = nextTopic
    self.wasClosed = wasClosed
    self.size = size
  }
}

/// What a store takes, in bytes.
public struct StoreSize: Hashable, Sendable {
  /// Of its files.
  public var files: UInt64
  /// Of that, what the next commits can use again; compacting (`LMDBStore.compact()`) gives it back to the disk.
  public var reusable: UInt64
  /// What it may grow to; nil for no limit.
  public var limit: UInt64?
  /// What its file system has left for it; nil where that isn't known.
  public var available: UInt64?

  public init(files: UInt64, reusable: UInt64, limit: UInt64? = nil, available: UInt64? = nil) {
    self.files = files
    self.reusable = reusable
    self.limit = limit
    self.available = available
  }

  /// Bytes that aren't free.
  public var used: UInt64 { files - min(files, reusable) }
}

/// A small state as it lies in a store.
public struct RawState: Hashable, Sendable {
  /// The kind's number, and then the state's own key, if all is well.
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

/// What is done to a topic, so that all that is left of it can be used.
public struct TopicRepair: Hashable, Sendable {
  public var topic: TopicID
  /// The offsets under which batches are stored that are removed.
  public var batches: [UInt64] = []
  /// The keys of states that are removed, as ``RawState`` has them.
  public var states: [[UInt8]] = []
  /// The extent as it is from now on; nil for as it was.
  public var extent: StoredExtent?
  /// The row as it is from now on; nil for as it was.
  public var row: StoredTopic?
  /// Removes all that there is under the topic's number. Nothing else is looked at then.
  public var isRemoval = false

  public init(_ topic: TopicID) {
    self.topic = topic
  }

  public var isEmpty: Bool {
    batches.isEmpty && states.isEmpty && extent == nil && row == nil && !isRemoval
  }
}
