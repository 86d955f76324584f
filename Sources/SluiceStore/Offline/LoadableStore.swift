/// A store into which topics can be loaded piece by piece, and which shows them once they are whole.
///
/// All calls may block on a disk, and come from one thread at a time.
public protocol LoadableStore: RepairableStore {
  /// A number for a topic to come. Should the process end before ``adopt(_:)``, what was loaded under it is thrown away like a
  /// deleted topic.
  func prepareTopic() throws(StoreError) -> TopicID

  /// Puts batches and states under a number that was prepared: all of them, or none.
  func load(_ batches: [LoadedBatch], _ states: [StoredState], into topic: TopicID) throws(StoreError)

  /// Makes topics of what was loaded, all at once: they are on disk when this returns.
  func adopt(_ topics: [LoadedTopic]) throws(StoreError)

  /// Throws away what was loaded under a number that was prepared.
  func discard(_ topic: TopicID) throws(StoreError)
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
  /// One that is deleted in exchange.
  public var replaced: TopicID?

  public init(id: TopicID, row: StoredTopic, extent: StoredExtent, replaced: TopicID? = nil) {
    self.id = id
    self.row = row
    self.extent = extent
    self.replaced = replaced
  }
}
