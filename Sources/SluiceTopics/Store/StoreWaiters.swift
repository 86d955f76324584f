import SluiceIO
import SluiceWire
import Synchronization

/// A producer that was rejected because the store takes no records: its publication was ended, or wasn't opened.
package struct StoreWaiter: Sendable {
  /// The connection by which it has come: its own, or that of the node that serves its client.
  package let carrier: UInt64
  /// Its own connection, at its node.
  package let connection: UInt64
  package let client: String
  /// The other node that its client is connected to; empty for none.
  package let node: String
  package let identity: String
  package let stream: UInt32
  package let topic: String
  package let since: MonotonicTime
  package let reason: TopicInfo.Publication.WaitReason
  /// The records that the topic has of it.
  package let received: UInt64
  /// When it was rejected last.
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
/// A producer is forgotten when it has another publication on the topic, when its connection ends, and when the store takes records again; one of another node's
/// client, whose connection ends elsewhere, also when it hasn't come back for some time.
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

  /// A producer that waits comes back within half a minute, about.
  private static let patience = Duration.seconds(75)

  /// The most that are known one by one; a client may ask for publications on any number of topics.
  private static let most = 10_000

  private struct State {
    var waiters: [Key: StoreWaiter] = [:]
    /// How many there are on each topic.
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
      // A producer that asks again has waited since it was rejected first.
      if state.waiters[key] != nil {
        state.waiters[key]?.asked = waiter.asked
      } else if state.waiters.count < Self.most {
        state.add(waiter, key)
      }
    }
  }

  /// A client has a publication on the topic.
  ///
  /// - Parameter carrier: the connection by which it has come.
  package func remove(_ user: Origin, by carrier: UInt64, topic: String) {
    guard count > 0 else { return }
    change { $0.remove(Key(carrier, user.node, user.connection, topic)) }
  }

  /// The connection has ended.
  package func remove(carrier: UInt64) {
    guard count > 0 else { return }
    change { state in
      for key in state.waiters.keys where key.carrier == carrier { state.remove(key) }
    }
  }

  /// Forgets producers of other nodes' clients that don't come back.
  func forgetSilent(at now: MonotonicTime) {
    guard count > 0 else { return }
    change { state in
      for (key, waiter) in state.waiters where !key.node.isEmpty && waiter.asked + Self.patience < now {
        state.remove(key)
      }
    }
  }

  /// The store takes records again.
  package func removeAll() { change { $0 = State() } }

  /// How many wait on a topic.
  package func count(on topic: String) -> Int {
    count == 0 ? 0 : state.withLock { $0.counts[topic] ?? 0 }
  }

  /// Those on a topic, the longest first.
  package func waiters(on topic: String) -> [StoreWaiter] {
    all.filter { $0.topic == topic }
  }

  /// All of them, the longest first.
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
