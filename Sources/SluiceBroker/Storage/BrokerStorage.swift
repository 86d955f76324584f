import SluiceStore

/// Where a broker keeps its durable topics, and whom it tells what happens there.
public struct BrokerStorage: Sendable {
  /// Used by the broker alone from when it is made, and closed when it has stopped.
  public var store: any TopicStore
  /// Called on the threads that work with the store, which wait for it.
  public var report: @Sendable (StorageEvent) -> Void

  public init(_ store: any TopicStore, report: @escaping @Sendable (StorageEvent) -> Void = { _ in }) {
    self.store = store
    self.report = report
  }
}
