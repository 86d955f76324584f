/// A store on this machine as the store of a shard: all calls block, and commits are settled when they return.
public final class LocalStore: ShardStore {
  private let store: any TopicStore

  public init(_ store: any TopicStore) {
    self.store = store
  }

  /// Reads the contents, and marks the store as open. Blocks.
  ///
  /// If the mark can't be written, later writes may fail as well, and the next start couldn't detect it: the contents then state that
  /// the store wasn't closed.
  public static func open(_ store: any TopicStore) throws(StoreError) -> OpenedShard {
    var contents = try store.contents()
    let isWritable = (try? store.commit([])) != nil
    contents.wasClosed = contents.wasClosed && isWritable
    return OpenedShard(LocalStore(store), contents: contents) { topic, kind throws(StoreError) in
      try store.states(of: topic, kind)
    }
  }

  public var limit: Int? { store.limit }
  public var depth: Int { 1 }
  public var mostChanges: Int { .max }
  public var commitBytes: Int { .max }
  public var isBlocking: Bool { true }

  public func begin(_ events: @escaping @Sendable (ShardStoreEvent) -> Void) {}

  public func commit(_ changes: [TopicChange], as number: UInt64) -> CommitOutcome {
    do throws(StoreError) {
      try store.commit(changes)
      return .settled(nil)
    } catch {
      return .settled(error)
    }
  }

  public func extent(of topic: TopicID) throws(StoreError) -> StoredExtent? { try store.extent(of: topic) }

  public func headers(
    of topic: TopicID, from offset: UInt64, _ body: (BatchHeader) -> Bool
  ) throws(StoreError) {
    try unsafe store.batches(of: topic, from: offset) { first, bytes in
      // The batch's checksum isn't verified: that would read all of it.
      guard let header = unsafe BatchHeader(bytes), header.firstOffset == first else { return true }
      return body(header)
    }
  }

  public func read(
    _ topic: TopicID, from offset: UInt64, bytes: Int,
    each: @escaping @Sendable (UInt64, UnsafeRawBufferPointer) -> Bool,
    _ done: @escaping @Sendable (StoreError?) -> Void
  ) {
    do throws(StoreError) {
      try unsafe store.batches(of: topic, from: offset, each)
      done(nil)
    } catch {
      done(error)
    }
  }

  public func find(
    _ time: Int64, in topic: TopicID, within span: Range<UInt64>,
    _ done: @escaping @Sendable (Result<UInt64?, StoreError>) -> Void
  ) {
    do throws(StoreError) {
      done(.success(try store.offset(in: topic, atOrAfter: time, within: span)))
    } catch {
      done(.failure(error))
    }
  }

  public func reclaim() throws(StoreError) -> Bool { try store.reclaim() }

  public func size() throws(StoreError) -> StoreSize? { try store.size() }

  public func checkPlace() throws(StoreError) { try store.checkPlace() }

  public func close(_ done: @escaping @Sendable (StoreError?) -> Void) {
    do throws(StoreError) {
      try store.close()
      done(nil)
    } catch {
      done(error)
    }
  }
}
