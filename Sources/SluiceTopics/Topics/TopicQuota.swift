import Synchronization

/// Counts the existing topics that one connection has made, and the cost of making them. From any thread.
package final class TopicQuota: Sendable {
  private let count = Atomic<Int>(0)
  private let toldWatchers = Atomic<Int>(0)

  /// The account that pays for the topics; nil for the broker's own.
  let account: KeptAccount?

  package init(_ account: KeptAccount? = nil) { self.account = account }

  package var used: Int { count.load(ordering: .relaxed) }

  /// The connection has made a topic.
  package func made() { count.add(1, ordering: .relaxed) }

  /// Counts subscriptions to patterns that were told of a new topic.
  package func told(_ watchers: Int) { toldWatchers.add(watchers, ordering: .relaxed) }

  /// Returns the number of subscriptions that were told since the last call.
  package func takeTold() -> Int { toldWatchers.exchange(0, ordering: .relaxed) }

  /// One of the topics was deleted, by any client.
  package func gone() { count.subtract(1, ordering: .relaxed) }
}
