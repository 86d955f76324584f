/// Shares what a session asks for among its feeds: each has an equal part, and a part is left for the next one.
///
/// Only feeds that have got something since are looked at, so that a message costs a client with very many subscriptions no more than others. A feed that has
/// nothing outstanding is given one record at least, whatever the others have: where the demand is used up by then, its record waits.
///
/// Its methods call nothing that calls it back, so overlapping accesses aren't checked for at run time.
final class MQTTShares {
  /// Feeds that have a share.
  @safe @exclusivity(unchecked) private var sharing = 0
  /// Records that all feeds have asked for and that haven't come.
  @safe @exclusivity(unchecked) private var outstanding = 0
  /// Feeds that may be granted more.
  @safe @exclusivity(unchecked) private var waiting: [MQTTFeed] = []
  @safe @exclusivity(unchecked) private var place = 0
  @safe @exclusivity(unchecked) private var credit = 0
  @safe @exclusivity(unchecked) private var free = 0
  @safe @exclusivity(unchecked) private var share = 1

  /// How many feeds the next sharing looks at.
  var waitingCount: Int { waiting.count }

  /// A feed comes. One that reads a single record again has no part in this.
  func add(_ feed: MQTTFeed) {
    guard !feed.isUnlimited, !feed.role.isFetch else { return }
    feed.counted = MQTTFeed.Counted(outstanding: 0, hasShare: false)
    note(feed)
  }

  /// A feed comes back as it was.
  ///
  /// - Parameter isWaiting: whether the next sharing looks at it.
  func restore(_ feed: MQTTFeed, isWaiting: Bool) {
    let now = MQTTFeed.Counted(outstanding: feed.outstanding, hasShare: feed.hasShare)
    feed.counted = now
    sharing += now.hasShare ? 1 : 0
    outstanding += now.outstanding
    guard isWaiting else { return }
    feed.isWaiting = true
    waiting.append(feed)
  }

  /// What a feed has been granted, has got or holds has changed.
  func note(_ feed: MQTTFeed) {
    guard let before = feed.counted else { return }
    let now = MQTTFeed.Counted(outstanding: feed.outstanding, hasShare: feed.hasShare)
    guard now != before else { return }
    feed.counted = now
    sharing += (now.hasShare ? 1 : 0) - (before.hasShare ? 1 : 0)
    outstanding += now.outstanding - before.outstanding
    guard now.hasShare, !before.hasShare || now.outstanding < before.outstanding, !feed.isWaiting else {
      return
    }
    feed.isWaiting = true
    waiting.append(feed)
  }

  func remove(_ feed: MQTTFeed) {
    guard let before = feed.counted.take() else { return }
    sharing -= before.hasShare ? 1 : 0
    outstanding -= before.outstanding
  }

  func removeAll() {
    for feed in waiting { feed.isWaiting = false }
    waiting = []
    (sharing, outstanding, place) = (0, 0, 0)
  }

  /// Returns the memory that is kept for feeds to come.
  func releaseUnused() { waiting.releaseUnused() }

  /// Begins to share so many records, with ``next()``. Returns false where no feed waits for any.
  func begin(_ credit: Int) -> Bool {
    guard credit > 0, !waiting.isEmpty, place == 0 else { return false }
    self.credit = credit
    free = credit - outstanding
    share = max(1, credit / (sharing + 1))
    return true
  }

  /// The next feed that is to be granted more, and how much.
  func next() -> (feed: MQTTFeed, count: Int)? {
    while place < waiting.count {
      let feed = waiting[place]
      place += 1
      feed.isWaiting = false
      guard let now = feed.counted, now.hasShare else { continue }
      let isEmpty = now.outstanding == 0
      guard isEmpty || now.outstanding * 2 <= share else { continue }
      let count = max(min(share - now.outstanding, free), isEmpty ? 1 : 0)
      guard count > 0 else { continue }
      free -= count
      return (feed, count)
    }
    waiting.removeAllKeepingUseful()
    place = 0
    return nil
  }
}
