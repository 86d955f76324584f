/// The number of a shard: a fixed slice of all names of topics. A broker of one node has one, with number 0.
public struct ShardID: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
  public var rawValue: UInt32

  public init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

  public var description: String { String(rawValue) }
}

/// The right to write a shard.
public struct ShardLease: Hashable, Sendable {
  public var shard: ShardID
  /// The number of the lease's holder: larger than that of each holder before.
  public var term: UInt64

  public init(shard: ShardID, term: UInt64) {
    self.shard = shard
    self.term = term
  }
}

/// A place where shards are stored, on this machine or far away.
public protocol ShardEngine: Sendable {
  /// Opens a shard for its new owner, and reads what is in it except the batches.
  ///
  /// From the moment at which this succeeds, no commit of a former owner succeeds.
  ///
  /// - Parameters:
  ///   - lease: the owner's. One with a smaller term than that of the last opener fails with ``StoreError/Kind/fenced``.
  ///   - done: called once, on a thread of the engine's choice, perhaps before this returns.
  func open(_ lease: ShardLease, _ done: @escaping @Sendable (Result<OpenedShard, StoreError>) -> Void)
}

/// A shard that was opened, and what was in it.
public struct OpenedShard: Sendable {
  public var store: any ShardStore
  public var contents: StoreContents
  /// Returns a topic's states of one kind, in the order of their keys. May block on a disk; serves to restore the topics only.
  public var states: @Sendable (TopicID, StoredState.Kind) throws(StoreError) -> [StoredState]

  public init(
    _ store: any ShardStore, contents: StoreContents,
    states: @escaping @Sendable (TopicID, StoredState.Kind) throws(StoreError) -> [StoredState]
  ) {
    self.store = store
    self.contents = contents
    self.states = states
  }
}

/// The result of a commit when ``ShardStore/commit(_:as:)`` returns.
public enum CommitOutcome: Sendable {
  /// It is stored as safely as the store can; or, with an error, nothing of it is.
  case settled(StoreError?)
  /// ``ShardStoreEvent/settled(_:_:)`` follows.
  case underWay
}

/// An event of a store that doesn't block.
public enum ShardStoreEvent: Sendable {
  /// The commit with that number is stored; or, with an error, nothing of it is.
  ///
  /// Commits settle in the order in which they were begun. When one fails, all that were begun before it was reported fail too.
  case settled(UInt64, StoreError?)
  /// Pending commits take longer than they should, since the store can't be reached or has to find out which ones were stored. It continues by
  /// itself.
  case delayed(StoreError)
  /// The store can be written again after ``delayed(_:)``.
  case resumed
  /// Another owner has the shard, or this one's lease has expired: nothing more is stored, and pending commits have
  /// failed.
  case fenced(StoreError)
}

/// The store of one shard, as its only owner uses it.
///
/// An engine on this machine is a ``TopicStore``, whose calls block: ``LocalStore`` makes it a shard's store at the price of one call. An engine far away
/// conforms to this protocol itself: its commits are pipelined, and its reads complete later.
///
/// The difference is in the results alone. A store that blocks settles a commit before ``commit(_:as:)`` returns, so that the path of one node
/// has neither a closure nor a queue more than with the blocking protocol. One that doesn't block says ``CommitOutcome/underWay``, and names
/// the commit's number later. Numbers, and not closures, name commits, because an owner has its commits in a queue anyway.
///
/// All calls but reads are made on the loop of the owner's writer, and events are reported there.
public protocol ShardStore: AnyObject, Sendable {
  /// The most bytes that the store may take; nil without a limit of its own.
  var limit: Int? { get }
  /// How many commits may be under way at a time; 1 for a store that blocks.
  var depth: Int { get }
  /// The most changes of one commit.
  var mostChanges: Int { get }
  /// So many bytes of records of a topic make a commit; what more there is goes into the next ones. All goes into one where each commit costs a sync of
  /// its own.
  var commitBytes: Int { get }
  /// Whether commits and reads complete before the calls return.
  var isBlocking: Bool { get }

  /// Starts the reports of the store's events. Called once, before the first commit.
  func begin(_ events: @escaping @Sendable (ShardStoreEvent) -> Void)

  /// Begins to make all of the changes, or none.
  ///
  /// Commits are made in the order of the calls. A topic is changed at most once by a commit; the next one may change it again while this one is under
  /// way.
  ///
  /// - Parameters:
  ///   - changes: at most ``mostChanges``.
  ///   - number: names the commit in its event; larger than that of the commit before.
  /// - Returns: whether it is settled. A change that can't be stored for its contents settles at once with ``StoreError/Kind/invalid``, and commits under
  ///   way aren't affected.
  func commit(_ changes: [TopicChange], as number: UInt64) -> CommitOutcome

  /// Returns which records of a topic are stored, without the commits under way; nil for an unknown topic.
  func extent(of topic: TopicID) throws(StoreError) -> StoredExtent?

  /// Passes the headers of batches to `body` in order, from the batch with the record of this offset. Headers aren't
  /// verified.
  ///
  /// A remote store reads them ahead, and passes on those that it has already.
  ///
  /// - Parameters:
  ///   - topic: the batches' topic.
  ///   - offset: where to begin.
  ///   - body: gets each header; returns whether it wants another one.
  func headers(of topic: TopicID, from offset: UInt64, _ body: (BatchHeader) -> Bool) throws(StoreError)

  /// Passes batches to `body` in order, from the batch with the record of this offset, or else the first one after it. From any thread.
  ///
  /// - Parameters:
  ///   - topic: the batches' topic.
  ///   - offset: where to begin.
  ///   - bytes: about how many bytes are wanted.
  ///   - each: gets the offset under which a batch is stored, and its bytes as they are stored, not checked yet, valid until it returns; returns whether
  ///     it wants another batch.
  ///   - done: called once after the last one, on any thread, perhaps before this returns; with what kept the store from reading on. Fewer batches
  ///     than wanted may have been handed out before the topic's head.
  func read(
    _ topic: TopicID, from offset: UInt64, bytes: Int,
    each: @escaping @Sendable (UInt64, UnsafeRawBufferPointer) -> Bool,
    _ done: @escaping @Sendable (StoreError?) -> Void)

  /// Finds the first record with this time or a later one. Skips damaged batches. From any thread.
  ///
  /// - Parameters:
  ///   - time: in milliseconds since 1970.
  ///   - topic: the records' topic.
  ///   - span: the offsets between which to look, where times don't go back.
  ///   - done: called once, on any thread, perhaps before this returns; gets nil when there is none.
  func find(
    _ time: Int64, in topic: TopicID, within span: Range<UInt64>,
    _ done: @escaping @Sendable (Result<UInt64?, StoreError>) -> Void)

  /// Frees a piece of the space that isn't needed, so that no call takes long. Returns whether there is more.
  func reclaim() throws(StoreError) -> Bool

  /// Returns the size of the store; nil if it isn't known. A store far away answers with what it learned last.
  func size() throws(StoreError) -> StoreSize?

  /// Throws ``StoreError/Kind/removed`` when the store has left the place at which it was opened. For stores on this
  /// machine.
  func checkPlace() throws(StoreError)

  /// Marks the store as closed, for ``StoreContents/wasClosed``, and releases it. Nothing may be called afterwards.
  ///
  /// - Parameter done: called once, perhaps before this returns; with what kept the store from being marked.
  func close(_ done: @escaping @Sendable (StoreError?) -> Void)
}

extension ShardStore {
  public func checkPlace() throws(StoreError) {}
}
