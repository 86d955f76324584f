import SluiceIO
import Synchronization

/// Counts connections, in all and from each address. A value: the caller adds and removes them.
struct ConnectionCounts {
  enum Refusal: Hashable {
    case inAll
    case perOrigin
  }

  private(set) var total = 0
  private var byOrigin: [PeerOrigin: Int] = [:]

  /// Counts a connection, unless a limit is reached.
  ///
  /// - Parameter origin: nil for a connection that only counts towards the total.
  mutating func add(from origin: PeerOrigin?, atMost limit: Int, perOrigin: Int) -> Refusal? {
    guard total < limit else { return .inAll }
    if let origin {
      guard byOrigin[origin, default: 0] < perOrigin else { return .perOrigin }
      byOrigin[origin, default: 0] += 1
    }
    total += 1
    return nil
  }

  /// Uncounts a connection that was added.
  mutating func remove(from origin: PeerOrigin?) {
    total -= 1
    guard let origin, let count = byOrigin[origin] else { return }
    byOrigin[origin] = count > 1 ? count - 1 : nil
  }

  /// The number of addresses with connections.
  var origins: Int { byOrigin.count }
}

/// Counts the existing topics that one connection has made, and the cost of making them. From any thread.
final class TopicQuota: Sendable {
  private let count = Atomic<Int>(0)
  private let toldWatchers = Atomic<Int>(0)

  var used: Int { count.load(ordering: .relaxed) }

  /// The connection has made a topic.
  func made() { count.add(1, ordering: .relaxed) }

  /// Counts subscriptions to patterns that were told of a new topic.
  func told(_ watchers: Int) { toldWatchers.add(watchers, ordering: .relaxed) }

  /// Returns the number of subscriptions that were told since the last call.
  func takeTold() -> Int { toldWatchers.exchange(0, ordering: .relaxed) }

  /// One of the topics was deleted, by any client.
  func gone() { count.subtract(1, ordering: .relaxed) }
}
