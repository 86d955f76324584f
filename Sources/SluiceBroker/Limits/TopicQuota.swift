import Synchronization

/// Counts the topics that one connection has made and that are still there, and what making them has cost. From any thread.
final class TopicQuota: Sendable {
  private let count = Atomic<Int>(0)
  private let toldWatchers = Atomic<Int>(0)

  var used: Int { count.load(ordering: .relaxed) }

  /// It has made another one.
  func made() { count.add(1, ordering: .relaxed) }

  /// So many subscriptions to patterns were told of one.
  func told(_ watchers: Int) { toldWatchers.add(watchers, ordering: .relaxed) }

  /// How many were told since this was asked last.
  func takeTold() -> Int { toldWatchers.exchange(0, ordering: .relaxed) }

  /// One of them is gone, whoever has deleted it.
  func gone() { count.subtract(1, ordering: .relaxed) }
}
