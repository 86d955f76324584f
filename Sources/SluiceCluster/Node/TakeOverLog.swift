import SluiceIO

/// Where the shards came from that the broker is opening, for the reports of how long that took.
struct TakeOverLog {
  private var origins: [Int: (cause: TakeOver.Cause, since: MonotonicTime)] = [:]

  /// This node has a shard.
  ///
  /// - Parameters:
  ///   - former: what the directory had of the shard before.
  ///   - giver: the node that has given the shard to this one; nil when it has taken it.
  ///   - directory: what it has of nodes.
  mutating func gained(
    _ shard: Int, _ former: ShardEntry?, givenBy giver: String?, _ directory: Directory, at now: MonotonicTime
  ) {
    if let giver {
      // Its topics pause from when the giver has begun to close it.
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
    // A node that has ended by itself was stopped in order, also when it had no node to give the shard to, or gave it to this one as that ended.
    let isStopped =
      owner?.record.session == record.session && owner?.record.endedBy == nil && owner?.isLive == false
    if record.state == .free || isStopped { return (.handedOver(from: record.owner), former.heard) }
    return (.died(record.owner), owner?.lastSign ?? former.heard)
  }

  /// This node has the shard no more.
  mutating func lost(_ shard: Int) { origins[shard] = nil }

  /// The broker has opened a shard. Returns the report; nil for one that was opened before.
  mutating func opened(_ shard: Int, term: UInt64, at now: MonotonicTime) -> TakeOver? {
    origins.removeValue(forKey: shard).map {
      TakeOver(shard: shard, term: term, cause: $0.cause, duration: now - $0.since)
    }
  }
}
