/// Shares a session's demand among its feeds in equal parts; one further part stays free for the next feed.
///
/// A sharing visits only feeds that have received records since the last one, so that a message costs no more if the client has very many subscriptions. A
/// feed with nothing outstanding is granted at least one record, even if the demand is used up; its record then waits.
///
/// Its methods call nothing that calls it back, so the run-time check of overlapping accesses is off.
final class MQTTShares {
  /// Feeds that have a share.
  @safe @exclusivity(unchecked) private var sharing = 0
  /// Records that all feeds have requested and not received.
  @safe @exclusivity(unchecked) private var outstanding = 0
  /// Feeds that may be granted more.
  @safe @exclusivity(unchecked) private var waiting: [MQTTFeed] = []
  @safe @exclusivity(unchecked) private var place = 0
  @safe @exclusivity(unchecked) private var credit = 0
  @safe @exclusivity(unchecked) private var free = 0
  @safe @exclusivity(unchecked) private var share = 1

  /// The number of feeds that the next sharing visits.
  var waitingCount: Int { waiting.count }

  /// Adds a feed. A feed that reads a single record again gets no share.
  func add(_ feed: MQTTFeed) {
    guard !feed.isUnlimited, !feed.role.isFetch else { return }
    feed.counted = MQTTFeed.Counted(outstanding: 0, hasShare: false)
    note(feed)
  }

  /// Adds a feed with its earlier state.
  ///
  /// - Parameter isWaiting: whether the next sharing visits it.
  func restore(_ feed: MQTTFeed, isWaiting: Bool) {
    let now = MQTTFeed.Counted(outstanding: feed.outstanding, hasShare: feed.hasShare)
    feed.counted = now
    sharing += now.hasShare ? 1 : 0
    outstanding += now.outstanding
    guard isWaiting else { return }
    feed.isWaiting = true
    waiting.append(feed)
  }

  /// Updates the counts after a feed was granted, received or held records.
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

  /// Frees memory that is reserved for further feeds.
  func releaseUnused() { waiting.releaseUnused() }

  /// Begins to share this many records; call ``next()`` for each grant. Returns false if no feed waits for records.
  func begin(_ credit: Int) -> Bool {
    guard credit > 0, !waiting.isEmpty, place == 0 else { return false }
    self.credit = credit
    free = credit - outstanding
    share = max(1, credit / (sharing + 1))
    return true
  }

  /// Returns the next feed to grant records to, and how many.
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
