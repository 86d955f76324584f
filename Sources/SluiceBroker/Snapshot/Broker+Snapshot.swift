extension Broker {
  /// Shows the broker as it is. From any thread; returns at once.
  ///
  /// Every loop is asked once, and answers a part at a time, so that nobody on it waits for long.
  ///
  /// - Parameter completion: called once, on one of the broker's loops, where it must not wait, nor put the snapshot together; on the calling thread when
  ///   they have ended, with a snapshot in which nobody is connected.
  public func snapshot(
    _ request: SnapshotRequest = SnapshotRequest(), completion: @escaping @Sendable (GatheredSnapshot) -> Void
  ) {
    SnapshotGathering(request, of: self, completion: completion).begin()
  }

  /// The store as it is; nil for a broker without durable topics. From any thread; returns at once.
  public var storage: StoreSnapshot? { core.storage?.snapshot }

  /// Shows the broker as it is.
  public func snapshot(_ request: SnapshotRequest = SnapshotRequest()) async -> BrokerSnapshot {
    let gathered = await withCheckedContinuation { continuation in
      snapshot(request) { continuation.resume(returning: $0) }
    }
    return gathered.assembled()
  }
}
