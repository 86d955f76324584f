import SluiceIO
import SluiceWire
import Synchronization

/// A producer that was rejected because the store accepts no records: its publication was ended, or wasn't opened.
package struct StoreWaiter: Sendable {
  /// The connection through which its requests arrive: its own, or that of the node that serves its client.
  package let carrier: UInt64
  /// Its own connection, at its node.
  package let connection: UInt64
  package let client: String
  /// The other node to which its client is connected; empty for none.
  package let node: String
  package let identity: String
  package let stream: UInt32
  package let topic: String
  package let since: MonotonicTime
  package let reason: TopicInfo.Publication.WaitReason
  /// The records that the topic has received from it.
  package let received: UInt64
  /// When it was last rejected.
  fileprivate(set) var asked: MonotonicTime

  /// - Parameter user: its client.
  package init(
    carrier: UInt64, user: Origin, identity: String, stream: UInt32, topic: String, since: MonotonicTime,
    reason: TopicInfo.Publication.WaitReason, received: UInt64 = 0
  ) {
    self.carrier = carrier
    connection = user.connection
    client = user.client
    node = user.node
    self.identity = identity
    self.stream = stream
    self.topic = topic
    self.since = since
    self.reason = reason
    self.received = received
    asked = since
  }

  package func waiting(at now: MonotonicTime) -> UInt64 {
    now > since ? max((now - since).clampedMilliseconds, 1) : 1
  }

  package func info(at now: MonotonicTime) -> TopicInfo.Publication {
    TopicInfo.Publication(
      connection: connection, client: client, stream: stream, granted: received, received: received,
      waiting: waiting(at: now), reason: reason, node: node)
  }
}

/// The producers that wait for the store, by connection and topic. From any loop.
///
/// A producer is removed when it has another publication on the topic, when its connection ends, and when the store accepts records again. For a client of
/// another node, the connection ends elsewhere; its producer is also removed when it hasn't retried for some time.
package final class StoreWaiters: Sendable {
  private struct Key: Hashable {
    var carrier: UInt64
    var node: String
    var connection: UInt64
    var topic: String

    init(_ waiter: StoreWaiter) {
      self.init(waiter.carrier, waiter.node, waiter.connection, waiter.topic)
    }

    init(_ carrier: UInt64, _ node: String, _ connection: UInt64, _ topic: String) {
      (self.carrier, self.node, self.connection, self.topic) = (carrier, node, connection, topic)
    }
  }

  /// A waiting producer retries within about half a minute.
  private static let patience = Duration.seconds(75)

  /// The most producers that are listed individually; a client may request publications on any number of topics.
  private static let most = 10_000

  private struct State {
    var waiters: [Key: StoreWaiter] = [:]
    /// The number of waiting producers by topic.
    var counts: [String: Int] = [:]

    mutating func add(_ waiter: StoreWaiter, _ key: Key) {
      waiters[key] = waiter
      counts[key.topic, default: 0] += 1
    }

    mutating func remove(_ key: Key) {
      guard waiters.removeValue(forKey: key) != nil else { return }
      counts[key.topic]! -= 1
      if counts[key.topic] == 0 { counts[key.topic] = nil }
    }
  }

  private let state = Mutex(State())
  private let number = Atomic<Int>(0)

  init() {}

  /// How many producers wait.
  package var count: Int { number.load(ordering: .relaxed) }

  package func add(_ waiter: StoreWaiter) {
    let key = Key(waiter)
    change { state in
      // A producer that retries has waited since it was first rejected.
      if state.waiters[key] != nil {
        state.waiters[key]?.asked = waiter.asked
      } else if state.waiters.count < Self.most {
        state.add(waiter, key)
      }
    }
  }

  /// Removes a producer whose client has a publication on the topic.
  ///
  /// - Parameter carrier: the connection through which its requests arrive.
  package func remove(_ user: Origin, by carrier: UInt64, topic: String) {
    guard count > 0 else { return }
    change { $0.remove(Key(carrier, user.node, user.connection, topic)) }
  }

  /// Removes the producers of a connection that has ended.
  package func remove(carrier: UInt64) {
    guard count > 0 else { return }
    change { state in
      for key in state.waiters.keys where key.carrier == carrier { state.remove(key) }
    }
  }

  /// Removes producers of other nodes' clients that have stopped retrying.
  func forgetSilent(at now: MonotonicTime) {
    guard count > 0 else { return }
    change { state in
      for (key, waiter) in state.waiters where !key.node.isEmpty && waiter.asked + Self.patience < now {
        state.remove(key)
      }
    }
  }

  /// Removes all producers, because the store accepts records again.
  package func removeAll() { change { $0 = State() } }

  /// The number of producers that wait on a topic.
  package func count(on topic: String) -> Int {
    count == 0 ? 0 : state.withLock { $0.counts[topic] ?? 0 }
  }

  /// The producers that wait on a topic, longest first.
  package func waiters(on topic: String) -> [StoreWaiter] {
    all.filter { $0.topic == topic }
  }

  /// All producers that wait, longest first.
  package var all: [StoreWaiter] {
    guard count > 0 else { return [] }
    return state.withLock { Array($0.waiters.values) }
      .sorted { ($0.since, $0.connection, $0.stream) < ($1.since, $1.connection, $1.stream) }
  }

  private func change(_ body: (inout State) -> Void) {
    state.withLock { state in
      body(&state)
      number.store(state.waiters.count, ordering: .relaxed)
    }
  }
}
