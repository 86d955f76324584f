import SluiceIO

/// The origins of shards that the broker is opening, to report how long that took.
struct TakeOverLog {
  private var origins: [Int: (cause: TakeOver.Cause, since: MonotonicTime)] = [:]

  /// Notes that this node owns a shard.
  ///
  /// - Parameters:
  ///   - former: the directory's former entry of the shard.
  ///   - giver: the node that has handed the shard over to this one; nil if it has taken it.
  ///   - directory: the known nodes.
  mutating func gained(
    _ shard: Int, _ former: ShardEntry?, givenBy giver: String?, _ directory: Directory, at now: MonotonicTime
  ) {
    if let giver {
      // Its topics pause from the moment at which the giver began to close it.
      let isSeen = former?.record?.owner == giver && former?.record?.state == .moving
      origins[shard] = (.handedOver(from: giver), isSeen ? former?.heard ?? now : now)
    } else {
      origins[shard] = Self.origin(former, directory, at: now)
    }
  }

  private static func origin(
    _ former: ShardEntry?, _ directory: Directory, at now: MonotonicTime
  ) -> (cause: TakeOver.Cause, since: MonotonicTime) {
    guard let former, let record = former.record else { return (.first, now) }
    let owner = directory.nodes[record.owner]
    // A node that has ended its own session was stopped in order, even if it had no node to hand the shard over to, or this one joined as it ended.
    let isStopped =
      owner?.record.session == record.session && owner?.record.endedBy == nil && owner?.isLive == false
    if record.state == .free || isStopped { return (.handedOver(from: record.owner), former.heard) }
    return (.died(record.owner), owner?.lastSign ?? former.heard)
  }

  /// Notes that this node no longer owns the shard.
  mutating func lost(_ shard: Int) { origins[shard] = nil }

  /// Notes that the broker has opened a shard. Returns the report; nil for a shard that was already open.
  mutating func opened(_ shard: Int, term: UInt64, at now: MonotonicTime) -> TakeOver? {
    origins.removeValue(forKey: shard).map {
      TakeOver(shard: shard, term: term, cause: $0.cause, duration: now - $0.since)
    }
  }
}
