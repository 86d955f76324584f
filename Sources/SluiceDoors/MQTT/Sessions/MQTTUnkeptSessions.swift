/// Decides whether there is room to keep the session in a record of this process.
struct MQTTUnkeptSessions {
  /// Connections whose sessions found no room; the states that they leave later aren't kept either.
  private var numbers: Set<UInt64> = []

  /// Checks a record that counts.
  ///
  /// - Parameters:
  ///   - cost: the bytes that its session counts now; nil if it isn't kept.
  ///   - former: the bytes that it counted before.
  ///   - tally: the count of all sessions before.
  /// - Returns: whether the record's state may be kept.
  mutating func keeps(
    _ kind: MQTTRosterRecord.Kind, _ cost: Int?, instead former: Int?, beside tally: MQTTSessionTally,
    within limits: MQTTLimits
  ) -> Bool {
    var isUnkept = false
    if case .release(let number, _, _, _) = kind { isUnkept = numbers.remove(number) != nil }
    guard let cost else { return true }
    if !isUnkept, limits.haveRoom(for: cost, former, beside: tally) { return true }
    if case .state(let number, _) = kind { numbers.insert(number) }
    return false
  }
}
