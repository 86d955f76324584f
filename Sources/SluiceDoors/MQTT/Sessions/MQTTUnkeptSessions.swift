/// Decides whether a record of this process keeps a session that there is room for.
struct MQTTUnkeptSessions {
  /// The connections whose sessions there was no room for: what they have left meanwhile isn't kept either.
  private var numbers: Set<UInt64> = []

  /// Takes a record into account that counts.
  ///
  /// - Parameters:
  ///   - cost: what its session counts now; nil if none is kept.
  ///   - former: what it counted before.
  ///   - tally: what all sessions counted before.
  /// - Returns: whether what the record keeps may stay.
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
