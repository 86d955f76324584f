/// Where topics outlive the process: batches of records by offset, and what belongs to them.
///
/// An engine stores bytes and keeps account of which records there are. What the bytes mean, when to commit and what to drop is decided above it.
///
/// All calls may block on a disk. ``commit(_:)``, ``reclaim()`` and ``close()`` are called by one thread at a time; the others by any, at any time until
/// then, and see what was committed before they were called.
public protocol TopicStore: Sendable {
  /// The most bytes that it may take; nil where it has no limit of its own.
  var limit: Int? { get }

  /// What there was when the store was opened.
  func contents() throws(StoreError) -> StoreContents

  /// The small states of one kind, in the order of their keys.
  func states(of topic: TopicID, _ kind: StoredState.Kind) throws(StoreError) -> [StoredState]

  /// Which records of a topic are stored; nil when it isn't there.
  func extent(of topic: TopicID) throws(StoreError) -> StoredExtent?

  /// Makes all of the changes, or none: they are on disk when this returns, and the store is as before when it throws.
  ///
  /// A topic is changed at most once by a commit.
  ///
  /// - Throws: ``StoreError/Kind/invalid`` when it is one of the changes that can't be stored, rather than the disk that fails.
  func commit(_ changes: [TopicChange]) throws(StoreError)

  /// Hands out batches in order, from the one that holds the record with this offset, or else the first one behind it.
  ///
  /// - Parameters:
  ///   - topic: whose.
  ///   - offset: where to begin.
  ///   - body: is given the offset under which a batch is stored, and its bytes as they are on disk, not checked yet. They are
  ///   valid until it returns, and what it keeps the store from reusing must be short: it returns whether it wants another.
  func batches(
    of topic: TopicID, from offset: UInt64, _ body: (UInt64, UnsafeRawBufferPointer) -> Bool
  ) throws(StoreError)

  /// Gives back a piece of the space that deleted topics had, so that none takes long. Returns whether there is more.
  func reclaim() throws(StoreError) -> Bool

  /// How much of the disk the store takes; nil where it doesn't know. Takes a time that grows with the lists of free space.
  func size() throws(StoreError) -> StoreSize?

  /// Says that all is in order, for ``StoreContents/wasClosed``, and lets go. Nothing may be called afterwards.
  func close() throws(StoreError)
}

extension TopicStore {
  public var limit: Int? { nil }

  public func size() throws(StoreError) -> StoreSize? { nil }
}

/// What a store holds when it is opened.
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
  /// Larger than every number that was ever given.
  public var nextTopic: TopicID
  /// Whether it was closed in order when it was used last, so that nothing can be missing. True for a new one.
  public var wasClosed: Bool

  public init(topics: [Topic] = [], nextTopic: TopicID = TopicID(rawValue: 1), wasClosed: Bool = true) {
    self.topics = topics
    self.nextTopic = nextTopic
    self.wasClosed = wasClosed
  }
}

extension TopicStore {
  /// The first record with this time or a later one; nil when there is none. Damaged batches count as if they weren't there.
  ///
  /// Looks at so many batches as the number of records has binary digits.
  public func offset(in topic: TopicID, atOrAfter time: Int64) throws(StoreError) -> UInt64? {
    guard let extent = try extent(of: topic) else { return nil }
    var low = extent.firstOffset
    var high = extent.head
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
