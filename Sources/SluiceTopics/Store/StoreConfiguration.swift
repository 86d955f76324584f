import SluiceStore
import SluiceWire

/// The store of a broker's durable topics, and the callback for its events.
public struct StoreConfiguration: Sendable {
  /// Belongs to the broker once that is created; the broker closes it after it has stopped.
  public var store: any TopicStore
  /// Called on the threads that work with the store, which wait until it returns.
  public var report: @Sendable (StoreEvent) -> Void

  public init(_ store: any TopicStore, report: @escaping @Sendable (StoreEvent) -> Void = { _ in }) {
    self.store = store
    self.report = report
  }
}

/// An event of a broker's store, for the operator.
public enum StoreEvent: Hashable, Sendable {
  /// The store was opened. Contains its size, and whether it was closed normally.
  case opened(topics: Int, bytes: UInt64, wasClosed: Bool)
  /// Nothing can be written; producers of durable topics wait.
  case failed(message: String, isFull: Bool)
  /// Producers still wait, for `milliseconds` so far; reported after one second, and then every minute.
  case waiting(publishers: Int, bytes: Int, isFull: Bool, milliseconds: UInt64)
  /// The store can be written again.
  case recovered
  /// Another node owns the store's shard: its topics accept no more records here.
  case fenced(message: String)
  /// The store rejects a change of a topic because of its contents. The change was dropped; other topics aren't affected.
  case rejected(topic: String, message: String)
  /// A limit of a durable topic drops records; reported once for each limit of a topic.
  case dropping(topic: String, limit: DroppedRecords.Cause)
  /// Records of a topic can't be read: those from offset `from` on, before offset `before`.
  case damaged(topic: String, from: UInt64, before: UInt64)
  /// A client knows records of a topic that the store doesn't have: those from offset `from` on, before offset `known`. It continues at `from`.
  case wentBack(topic: String, from: UInt64, known: UInt64)
  /// A topic's state other than its records can't be read.
  case lost(topic: String, message: String)
  /// All changes are on disk, and the store is closed; otherwise with a message.
  case closed(message: String?)
}
