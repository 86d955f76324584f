import Synchronization

/// How far a subscriber has come with the records of one life of its topic: what its durable cursor is told.
///
/// A subscription's records share it, see ``TopicRecord/commits``, so that each can be committed by itself, from any thread. It says nothing to anybody
/// when the subscription was cancelled or ended by an error, or the topic was started anew; nor of records that the broker has lost, see
/// ``TopicEvent/rewound(nextOffset:)``.
// @unchecked: `bridge` is set once, before anybody else has this; the rest is atomic.
public final class CursorCommits: @unchecked Sendable {
  /// The offset up to which everything is dealt with; 0 at first.
  private let through = Atomic<UInt64>(0)
  private weak var bridge: RemoteSubscription?

  init(_ bridge: RemoteSubscription) {
    self.bridge = bridge
  }

  var value: UInt64 { through.load(ordering: .acquiring) }

  /// Commits the record with that offset, which must have been received, and all before it. One that is behind an earlier one changes nothing.
  ///
  /// Returns at once, from any thread; the broker is told at the end of the loop's turn, of many records once.
  public func commit(through offset: UInt64) {
    let next = min(offset, UInt64(Int64.max) - 1) + 1
    let (old, _) = through.max(next, ordering: .acquiringAndReleasing)
    if old < next { bridge?.commitNoted() }
  }

  /// The same on the loop, which looks by itself.
  func advance(to offset: UInt64) {
    through.max(offset, ordering: .acquiringAndReleasing)
  }
}

extension TopicRecord {
  /// Commits this record and all before it: the subscription's durable cursor stands behind it from now on, and whoever subscribes with it next begins there.
  ///
  /// For subscriptions with ``SubscriptionPlan/Cursor/Commit/manual``; without a cursor it has no effect. What was committed before a connection was lost is
  /// told again on the next. See ``CursorCommits/commit(through:)``.
  public func commit() {
    buffer.commits?.commit(through: offset)
  }

  /// What this record, and others of its subscription, can be committed with when the records themselves aren't kept; nil without a durable cursor.
  public var commits: CursorCommits? { buffer.commits }
}
