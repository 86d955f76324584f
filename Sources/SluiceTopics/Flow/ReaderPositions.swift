/// The positions of a topic's subscriptions, reduced to the numbers that flow control needs. Those of several loops can be merged.
package struct ReaderPositions: Hashable, Sendable {
  /// The subscriptions that have caught up with the head once. They determine producers' demand.
  package struct CaughtUp: Hashable, Sendable {
    /// The offsets up to which the subscriptions with the least and the most demand have requested; all ones for unlimited.
    var leastAsked: UInt64
    var mostAsked: UInt64
    /// The next offsets of the subscriptions that are furthest behind and furthest ahead.
    var leastTaken: UInt64
    var mostTaken: UInt64
  }

  /// Nil while no subscription has caught up.
  package var caughtUp: CaughtUp?
  /// The next offset of the subscription that is furthest behind, replaying or not; nil without any.
  package var oldest: UInt64?
  /// The lowest next offset of the subscriptions that read the newest record of each key; nil without any.
  package var readsNewestFrom: UInt64?

  /// Adds a subscription.
  ///
  /// - Parameters:
  ///   - nextOffset: the offset of its next record.
  ///   - available: how many more records it has requested; all ones for unlimited.
  package mutating func add(nextOffset: UInt64, available: UInt64, isLive: Bool) {
    add(ReaderPosition(nextOffset: nextOffset, available: available, isLive: isLive))
  }

  /// Adds a subscription or group.
  package mutating func add(_ position: ReaderPosition) {
    var one = ReaderPositions()
    one.oldest = position.oldest
    if let offset = position.readsNewestFrom { one.add(readingNewestFrom: offset) }
    if position.isLive {
      one.caughtUp = CaughtUp(
        leastAsked: position.askedThrough, mostAsked: position.askedThrough,
        leastTaken: position.nextOffset, mostTaken: position.nextOffset)
    }
    merge(one)
  }

  /// Adds a subscription that reads the newest record of each key, before it continues with the log.
  package mutating func add(readingNewestFrom offset: UInt64) {
    readsNewestFrom = Self.least(readsNewestFrom, offset)
  }

  mutating func merge(_ other: ReaderPositions) {
    oldest = Self.least(oldest, other.oldest)
    readsNewestFrom = Self.least(readsNewestFrom, other.readsNewestFrom)
    guard let theirs = other.caughtUp else { return }
    guard var ours = caughtUp else { return caughtUp = theirs }
    ours.leastAsked = min(ours.leastAsked, theirs.leastAsked)
    ours.mostAsked = max(ours.mostAsked, theirs.mostAsked)
    ours.leastTaken = min(ours.leastTaken, theirs.leastTaken)
    ours.mostTaken = max(ours.mostTaken, theirs.mostTaken)
    caughtUp = ours
  }

  private static func least(_ left: UInt64?, _ right: UInt64?) -> UInt64? {
    guard let left, let right else { return left ?? right }
    return min(left, right)
  }
}
