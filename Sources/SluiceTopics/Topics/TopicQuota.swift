import Synchronization

/// Counts the existing topics that one connection has created, and the cost of creating them. From any thread.
package final class TopicQuota: Sendable {
  private let count = Atomic<Int>(0)
  private let toldWatchers = Atomic<Int>(0)

  /// The account that pays for the topics; nil for the broker's own.
  let account: KeptAccount?

  package init(_ account: KeptAccount? = nil) { self.account = account }

  package var used: Int { count.load(ordering: .relaxed) }

  /// Counts a topic that the connection has created.
  package func made() { count.add(1, ordering: .relaxed) }

  /// Counts subscriptions to patterns that were notified of a new topic.
  package func told(_ watchers: Int) { toldWatchers.add(watchers, ordering: .relaxed) }

  /// Returns the number of subscriptions that were notified since the last call.
  package func takeTold() -> Int { toldWatchers.exchange(0, ordering: .relaxed) }

  /// Uncounts a topic that was deleted, by any client.
  package func gone() { count.subtract(1, ordering: .relaxed) }
}
