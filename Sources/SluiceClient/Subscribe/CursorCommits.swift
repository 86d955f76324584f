import Synchronization

/// How far a subscriber has processed the records of one epoch of its topic: the position of its durable cursor.
///
/// The records of a subscription share it, see ``TopicRecord/commits``, so that each can be committed on its own, from any thread. It has no effect
/// after the subscription was cancelled or has ended with an error, or the topic was started anew; nor for records that the broker has lost, see
/// ``TopicEvent/rewound(nextOffset:)``.
// @unchecked: `subscription` is set once, before this is shared; the rest is atomic.
public final class CursorCommits: @unchecked Sendable {
  /// The offset up to which all records are processed; 0 at first.
  private let through = Atomic<UInt64>(0)
  private weak var subscription: RemoteSubscription?

  init(_ subscription: RemoteSubscription) {
    self.subscription = subscription
  }

  var value: UInt64 { through.load(ordering: .acquiring) }

  /// Commits the record with that offset, which must have been received, and all before it. An offset below an earlier commit has no effect.
  ///
  /// Returns at once, from any thread. The position is sent to the broker at the end of the loop's turn, once for many records.
  public func commit(through offset: UInt64) {
    let next = min(offset, UInt64(Int64.max) - 1) + 1
    let (old, _) = through.max(next, ordering: .acquiringAndReleasing)
    if old < next { subscription?.notifyLoop() }
  }

  /// The same on the loop, which sends due commits by itself.
  func advance(to offset: UInt64) {
    through.max(offset, ordering: .acquiringAndReleasing)
  }
}

extension TopicRecord {
  /// Commits this record and all before it: the subscription's durable cursor moves behind it, and the next subscription with this cursor begins there.
  ///
  /// For subscriptions with ``SubscriptionPlan/Cursor/Commit/manual``; without a cursor it has no effect. Commits from before a lost connection are
  /// sent again on the next connection. See ``CursorCommits/commit(through:)``.
  public func commit() {
    buffer.commits?.commit(through: offset)
  }

  /// Commits this record, and others of its subscription, when the records themselves aren't kept; nil without a durable cursor.
  public var commits: CursorCommits? { buffer.commits }
}

/// The commits that a subscription sends to its durable cursor. On the loop only.
struct CursorProgress {
  /// For the records of the topic's current epoch.
  private(set) var commits: CursorCommits
  /// For the epoch that the current one continues, up to `end`: its records may still be committed.
  private var earlier: (commits: CursorCommits, end: UInt64)?
  /// The position that was sent on this stream.
  private var committed: UInt64 = 0
  /// The offset behind the last received record.
  private var recordsEnd: UInt64 = 0

  init(_ subscription: RemoteSubscription) {
    commits = CursorCommits(subscription)
  }

  mutating func streamBegins() {
    committed = 0
  }

  mutating func received(through end: UInt64) {
    recordsEnd = end
  }

  /// Handles that the broker has lost the records from `end` on, which can't be committed: other records will have their offsets.
  mutating func rewind(to end: UInt64, _ subscription: RemoteSubscription) {
    recordsEnd = min(recordsEnd, end)
    let next = CursorCommits(subscription)
    next.advance(to: min(position, end))
    earlier = (commits, end)
    commits = next
  }

  /// Handles that the topic was started anew: commits of earlier records have no effect.
  mutating func startOver(_ subscription: RemoteSubscription) {
    commits = CursorCommits(subscription)
    earlier = nil
    recordsEnd = 0
  }

  /// Returns the position to send, if it has moved since it was sent on this stream.
  mutating func next() -> UInt64? {
    let offset = min(position, recordsEnd)
    guard offset > committed else { return nil }
    committed = offset
    return offset
  }

  private var position: UInt64 { max(commits.value, earlier.map { min($0.commits.value, $0.end) } ?? 0) }

  /// Whether all received records are committed.
  var isComplete: Bool { committed >= recordsEnd }
}
