import Synchronization

/// Counts the topics that one connection has made and that are still there. From any thread.
final class TopicQuota: Sendable {
  private let count = Atomic<Int>(0)

  var used: Int { count.load(ordering: .relaxed) }

  /// It has made another one.
  func made() { count.add(1, ordering: .relaxed) }

  /// One of them is gone, whoever has deleted it.
  func gone() { count.subtract(1, ordering: .relaxed) }
}
