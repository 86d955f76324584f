/// How many sessions are kept beyond their connections, and what they count in bytes: what ``MQTTLimits`` bounds.
struct MQTTSessionTally: Hashable, Sendable {
  private(set) var count = 0
  private(set) var bytes = 0

  /// What a session counts, in bytes, that is kept as so many.
  static func cost(of bytes: Int, _ key: MQTTHub.Key) -> Int {
    bytes + key.identity.utf8.count + key.clientID.utf8.count + MQTTLimits.sessionOverhead
  }

  /// A session counts something else from now on; nil where none is kept.
  mutating func replace(_ former: Int?, by cost: Int?) {
    count += (cost == nil ? 0 : 1) - (former == nil ? 0 : 1)
    bytes += (cost ?? 0) - (former ?? 0)
  }
}

extension MQTTLimits {
  /// Whether a session fits beside the others.
  ///
  /// - Parameters:
  ///   - cost: what it counts.
  ///   - former: what it has counted; nil for a session that wasn't kept.
  ///   - tally: what all count, with `former`.
  func haveRoom(for cost: Int, _ former: Int?, beside tally: MQTTSessionTally) -> Bool {
    // One that doesn't grow stays, whatever a restart with lower limits says.
    if let former, cost <= former { return true }
    return tally.bytes - (former ?? 0) + cost <= sessionBytes && (former != nil || tally.count < sessions)
  }

  /// Whether one more session may be begun, or one that is kept may grow.
  func haveRoom(growing: Bool, beside tally: MQTTSessionTally) -> Bool {
    tally.bytes < sessionBytes && (growing || tally.count < sessions)
  }
}
