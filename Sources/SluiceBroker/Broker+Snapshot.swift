import SluiceTopics
import SluiceWire

extension Broker {
  /// Gathers a snapshot of the broker. From any thread; returns at once.
  ///
  /// Every loop is asked once, and answers a part per turn, so that its connections don't wait for long.
  ///
  /// - Parameters:
  ///   - request: how much to list.
  ///   - completion: called once, on one of the broker's loops, where it must neither wait nor assemble the snapshot; on the calling thread when
  ///     the loops have ended, with a snapshot without connections.
  public func snapshot(
    _ request: SnapshotRequest = SnapshotRequest(), completion: @escaping @Sendable (GatheredSnapshot) -> Void
  ) {
    SnapshotGathering(
      request, of: core, on: contexts, metrics: { [self] in metrics }, completion: completion
    ).begin()
  }

  /// A snapshot of the store; nil for a broker without durable topics. From any thread; returns at once.
  public var storage: StoreSnapshot? { core.stores.snapshot }

  /// Returns a snapshot of the broker.
  public func snapshot(_ request: SnapshotRequest = SnapshotRequest()) async -> BrokerSnapshot {
    let gathered = await withCheckedContinuation { continuation in
      snapshot(request) { continuation.resume(returning: $0) }
    }
    return gathered.assembled()
  }

  /// The most records that are shown, also when more are requested.
  private static let shownRecords = 10_000

  /// Shows the newest records of a topic; for a durable topic, those that are still in memory. Attaches nothing to the topic and doesn't delay
  /// its producers. From any thread.
  ///
  /// - Parameters:
  ///   - topic: its name.
  ///   - count: the most records.
  ///   - bytes: the most bytes of them in all, keys and headers included.
  ///   - completion: called once, before this returns, with the records from the oldest to the newest; with nil when the topic doesn't exist.
  public func lastRecords(
    of topic: String, count: Int, bytes: Int, completion: @Sendable ([RecordSnapshot]?) -> Void
  ) {
    let log = core.registry.find(topic)?.epoch.log
    completion(log?.newestRecords(min(count, Self.shownRecords), bytes: bytes))
  }
}
