/// The number of sessions that outlive their connections, and the bytes that they count towards ``MQTTLimits``.
struct MQTTSessionTally: Hashable, Sendable {
  private(set) var count = 0
  private(set) var bytes = 0

  /// The bytes that a session of this encoded size counts towards the limit.
  static func cost(of bytes: Int, _ key: MQTTHub.Key) -> Int {
    bytes + key.identity.utf8.count + key.clientID.utf8.count + MQTTLimits.sessionOverhead
  }

  /// Replaces a session's cost; nil for a session that isn't kept.
  mutating func replace(_ former: Int?, by cost: Int?) {
    count += (cost == nil ? 0 : 1) - (former == nil ? 0 : 1)
    bytes += (cost ?? 0) - (former ?? 0)
  }
}

extension MQTTLimits {
  /// Returns whether a session fits within the limits.
  ///
  /// - Parameters:
  ///   - cost: the bytes that it counts.
  ///   - former: the bytes that it counted before; nil for a session that wasn't kept.
  ///   - tally: the count of all sessions, including `former`.
  func haveRoom(for cost: Int, _ former: Int?, beside tally: MQTTSessionTally) -> Bool {
    // A session that doesn't grow is kept, even after a restart with lower limits.
    if let former, cost <= former { return true }
    return tally.bytes - (former ?? 0) + cost <= sessionBytes && (former != nil || tally.count < sessions)
  }

  /// Returns whether a further session may begin, or a kept one may grow.
  func haveRoom(growing: Bool, beside tally: MQTTSessionTally) -> Bool {
    tally.bytes < sessionBytes && (growing || tally.count < sessions)
  }
}
