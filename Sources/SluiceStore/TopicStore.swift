/// A persistent store of topics on this machine: batches of records by offset, and the topics' rows and small states.
///
/// The broker uses it as the store of a shard, through ``LocalStore``; the offline tools use it as it is.
///
/// An engine stores bytes and knows which records it has. The broker decides what the bytes mean, when to commit and what to drop.
///
/// All calls may block on a disk. One thread at a time calls ``commit(_:)``, ``reclaim()`` and ``close()``; any thread may call the others until the
/// store is closed, and sees what was committed before the call.
public protocol TopicStore: Sendable {
  /// The most bytes that the store may take; nil without a limit of its own.
  var limit: Int? { get }

  /// The store's contents when it was opened.
  func contents() throws(StoreError) -> StoreContents

  /// Returns a topic's states of one kind, in the order of their keys.
  func states(of topic: TopicID, _ kind: StoredState.Kind) throws(StoreError) -> [StoredState]

  /// Returns which records of a topic are stored; nil for an unknown topic.
  func extent(of topic: TopicID) throws(StoreError) -> StoredExtent?

  /// Makes all of the changes, or none: they are on disk when this returns, and the store is as before when it throws.
  ///
  /// A topic is changed at most once by a commit.
  ///
  /// - Throws: ``StoreError/Kind/invalid`` when one of the changes can't be stored for its contents; another kind when the disk fails.
  func commit(_ changes: [TopicChange]) throws(StoreError)

  /// Passes batches to `body` in order, from the batch with the record of this offset, or else the first one after it.
  ///
  /// - Parameters:
  ///   - topic: the batches' topic.
  ///   - offset: where to begin.
  ///   - body: gets the offset under which a batch is stored, and its bytes as they are on disk, not checked yet. They are
  ///   valid until it returns. It must return soon, since the store can't reuse space meanwhile; it returns whether it wants another batch.
  func batches(
    of topic: TopicID, from offset: UInt64, _ body: (UInt64, UnsafeRawBufferPointer) -> Bool
  ) throws(StoreError)

  /// Frees a piece of the space that deleted topics had, so that no call takes long. Returns whether there is more.
  func reclaim() throws(StoreError) -> Bool

  /// Returns the disk space of the store; nil if it isn't known. Takes a time that grows with the lists of free space.
  func size() throws(StoreError) -> StoreSize?

  /// Throws ``StoreError/Kind/removed`` when the store's files were removed or replaced: later commits are lost with them.
  func checkPlace() throws(StoreError)

  /// Marks the store as closed, for ``StoreContents/wasClosed``, and releases it. Nothing may be called afterwards.
  func close() throws(StoreError)
}

extension TopicStore {
  public var limit: Int? { nil }

  public func size() throws(StoreError) -> StoreSize? { nil }

  public func checkPlace() throws(StoreError) {}
}

/// The content of a store when it is opened.
public struct StoreContents: Sendable {
  public struct Topic: Hashable, Sendable {
    public var id: TopicID
    public var row: StoredTopic
    public var extent: StoredExtent

    public init(id: TopicID, row: StoredTopic, extent: StoredExtent) {
      self.id = id
      self.row = row
      self.extent = extent
    }
  }

  /// In the order of their numbers.
  public var topics: [Topic]
  /// Larger than every number that was ever assigned.
  public var nextTopic: TopicID
  /// Whether the store was closed after its last use, so that nothing can be missing. True for a new one.
  public var wasClosed: Bool

  public init(topics: [Topic] = [], nextTopic: TopicID = TopicID(rawValue: 1), wasClosed: Bool = true) {
    self.topics = topics
    self.nextTopic = nextTopic
    self.wasClosed = wasClosed
  }
}

extension TopicStore {
  /// The first record with this time or a later one; nil when there is none. Skips damaged batches.
  ///
  /// A binary search: reads about log2 of the number of records batches.
  ///
  /// - Parameters:
  ///   - topic: the topic.
  ///   - time: in milliseconds since 1970.
  ///   - span: the offsets between which to look, where times don't go back.
  public func offset(
    in topic: TopicID, atOrAfter time: Int64, within span: Range<UInt64> = 0..<UInt64.max
  ) throws(StoreError) -> UInt64? {
    guard let extent = try extent(of: topic) else { return nil }
    var low = max(extent.firstOffset, span.lowerBound)
    var high = min(extent.head, span.upperBound)
    var found: UInt64?
    // The first batch that ends at that time or later holds it.
    while low < high {
      let middle = low + (high - low) / 2
      var probe: (header: BatchHeader, first: UInt64?)?
      try unsafe batches(of: topic, from: middle) { offset, bytes in
        guard let batch = unsafe BatchView(bytes, of: topic, at: offset) else { return true }
        probe = (batch.header, batch.firstOffset(atOrAfter: time))
        return false
      }
      guard let probe, probe.header.firstOffset < high else {
        high = middle
        continue
      }
      if let first = probe.first {
        found = first
        high = min(middle, probe.header.firstOffset)
      } else {
        low = probe.header.endOffset
      }
    }
    return found
  }
}

/// A commit's change of one topic.
public struct TopicChange: Sendable {
  /// A small state that is set, or removed.
  public struct State: Hashable, Sendable {
    public var kind: StoredState.Kind
    public var key: [UInt8]
    /// Nil to remove it.
    public var value: [UInt8]?

    public init(_ kind: StoredState.Kind, key: [UInt8], value: [UInt8]?) {
      self.kind = kind
      self.key = key
      self.value = value
    }

    /// Why no store takes it; nil for one that a store takes.
    public var violation: StoreError? {
      guard !(1...255 ~= key.count) else { return nil }
      return StoreError(.invalid, "a state's key has \(key.count) bytes; it must have 1 to 255")
    }
  }

  public var topic: TopicID
  /// The topic's new row; nil to leave it unchanged. A topic's first change has one.
  public var row: StoredTopic?
  /// Sealed, in order, the first at the topic's head. For a new topic, the first one's offset is the topic's first
  /// offset.
  public var batches: [BatchBlock] = []
  public var states: [State] = []
  /// Drops the batches all of whose records are before that offset.
  public var truncateBefore: UInt64?
  /// Deletes the topic and everything of it. The other properties are ignored then.
  public var isDeletion = false

  public init(_ topic: TopicID) {
    self.topic = topic
  }
}

/// An error of a store. The store's contents are as before.
public struct StoreError: Error, Hashable, Sendable, CustomStringConvertible {
  public enum Kind: Hashable, Sendable {
    /// The disk, the quota or the store's own limit leaves no room. The same call may succeed when there is room again.
    case full
    /// The system reported an error.
    case failed
    /// The store's files have left the place at which they were opened: they were removed, moved, or replaced.
    case removed
    /// Another process has the store open.
    case inUse
    /// There is no store, or not of this kind.
    case notAStore
    /// A later version of this software made it.
    case newer
    /// The stored data contradicts itself.
    case damaged
    /// The change can't be stored, whatever the state of the disk: it breaks a rule of the store, or doesn't continue what is stored. The
    /// same change is refused again; other changes aren't affected.
    case invalid
    /// Another owner has the shard now, or had it last with a larger term. Nothing more can be stored by this one.
    case fenced
    /// The engine can't be reached, or has no leader. Nothing was stored. The same call may succeed later.
    case unavailable
    /// The engine can't be reached, and it isn't known whether the change was stored. It mustn't be tried again before that is known.
    case outcomeUnknown
  }

  public var kind: Kind
  /// The attempted action, the cause, and the remedy; with the path.
  public var message: String

  public init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  public var description: String { message }
}
