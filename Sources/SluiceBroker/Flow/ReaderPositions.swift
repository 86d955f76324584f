/// Where the subscriptions to a topic stand, in as few numbers as flow control needs. Those of several loops add up.
struct ReaderPositions: Hashable, Sendable {
  /// Subscriptions that have caught up with the head once, and count for producers' demand.
  struct CaughtUp: Hashable, Sendable {
    /// The offset up to which the one with the least demand has asked, and the one with the most; all ones is unlimited.
    var leastAsked: UInt64
    var mostAsked: UInt64
    /// The next offset of the one that is furthest behind, and of the one that is furthest ahead.
    var leastTaken: UInt64
    var mostTaken: UInt64
  }

  /// Nil while none has caught up.
  var caughtUp: CaughtUp?
  /// The next offset of the subscription that is furthest behind, replaying or not; nil without any.
  var oldest: UInt64?
  /// Of those who read the newest records of each key, the next offset of the one that is furthest behind; nil without any.
  var readsNewestFrom: UInt64?

  /// One subscription more.
  ///
  /// - Parameters:
  ///   - nextOffset: of the record that it gets next.
  ///   - available: how many more it has asked for; all ones is unlimited.
  mutating func add(nextOffset: UInt64, available: UInt64, isLive: Bool) {
    add(ReaderPosition(nextOffset: nextOffset, available: available, isLive: isLive))
  }

  /// One subscription or group more.
  mutating func add(_ position: ReaderPosition) {
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

  /// One subscription that reads the newest records of each key, up to where it goes over to the log.
  mutating func add(readingNewestFrom offset: UInt64) {
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
