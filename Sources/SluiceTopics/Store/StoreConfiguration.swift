import SluiceStore
import SluiceWire

/// The store of a broker's durable topics, and what is called with its events.
public struct StoreConfiguration: Sendable {
  /// Belongs to the broker once that is made; the broker closes it when it has stopped.
  public var store: any TopicStore
  /// Called on the threads that work with the store, which wait for its return.
  public var report: @Sendable (StoreEvent) -> Void

  public init(_ store: any TopicStore, report: @escaping @Sendable (StoreEvent) -> Void = { _ in }) {
    self.store = store
    self.report = report
  }
}

/// An event of a broker's store, for the operator.
public enum StoreEvent: Hashable, Sendable {
  /// The store was opened: what is in it, and whether it was closed in order.
  case opened(topics: Int, bytes: UInt64, wasClosed: Bool)
  /// Nothing can be written; producers of durable topics wait.
  case failed(message: String, isFull: Bool)
  /// Producers still wait, since so many milliseconds; reported a second after it began, and every minute from then on.
  case waiting(publishers: Int, bytes: Int, isFull: Bool, milliseconds: UInt64)
  /// The store can be written again.
  case recovered
  /// Another node has the store's shard: its topics take nothing more here.
  case fenced(message: String)
  /// The store refuses a change of a topic for what is in it. The change was set aside; other topics aren't affected.
  case rejected(topic: String, message: String)
  /// A limit of a durable topic drops records; reported once for each limit of a topic.
  case dropping(topic: String, limit: DroppedRecords.Cause)
  /// Records of a topic can't be read: those from the first offset on, before the other.
  case damaged(topic: String, from: UInt64, before: UInt64)
  /// A client knows records of a topic that the store doesn't have: those from the first offset on, before the other. It goes on at the first.
  case wentBack(topic: String, from: UInt64, known: UInt64)
  /// A topic's state other than its records can't be read.
  case lost(topic: String, message: String)
  /// All is on disk, and the store closed. With a message when it isn't.
  case closed(message: String?)
}
