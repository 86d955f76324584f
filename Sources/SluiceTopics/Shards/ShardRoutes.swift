import SluiceIO
import SluiceStore
import Synchronization

/// Another node of the cluster.
package struct RemoteNode: Hashable, Sendable {
  package var name: String
  /// Where clients and other nodes reach it, as `HOST:PORT`.
  package var address: String

  package init(name: String, address: String) {
    self.name = name
    self.address = address
  }
}

/// Where a topic is served.
package enum TopicRoute: Hashable, Sendable {
  /// By this node.
  case local
  case remote(RemoteNode)
  /// Its shard has no owner at the moment, or the owner opens or closes it: retry when the routes have changed.
  case moving
}

/// Which node of a cluster serves which topics, as this node knows it.
///
/// A broker of one node has none. Looked up once for each stream that is opened, under one short lock; never per record. From any thread.
package final class ShardRoutes: Sendable {
  private struct State {
    /// Nil before this node has received it.
    var shardCount: Int?
    var routes: [ShardID: TopicRoute] = [:]
    var nodes: [RemoteNode] = []
    var problems: [String: String] = [:]
    var observers: [UInt64: @Sendable () -> Void] = [:]
    var lastObserver: UInt64 = 0
  }

  /// This node's lease of its shards.
  package let lease = NodeLease()
  private let state = Mutex(State())

  /// The node's name, for operators of other nodes; empty for none.
  package let name: String

  /// - Parameter name: the node's name.
  package init(of name: String = "") {
    self.name = name
  }

  // MARK: Looking up

  /// The shard of a topic; nil before the number of shards is known.
  package func shard(of topic: String) -> ShardID? {
    state.withLock { Self.shard(of: topic, $0) }
  }

  package func route(of topic: String) -> TopicRoute {
    state.withLock { state in
      Self.shard(of: topic, state).flatMap { state.routes[$0] } ?? .moving
    }
  }

  package func route(of shard: ShardID) -> TopicRoute {
    state.withLock { $0.routes[shard] ?? .moving }
  }

  /// Which nodes serve which shards; nil while a shard moves, or this node doesn't know yet.
  package var agreement: ShardAgreement? {
    state.withLock { state in
      guard let count = state.shardCount else { return nil }
      var agreement = ShardAgreement()
      for number in 0..<UInt32(count) {
        let shard = ShardID(rawValue: number)
        switch state.routes[shard] ?? .moving {
        case .local: agreement.own.insert(shard)
        case .remote(let node): agreement.others[node, default: ShardSet()].insert(shard)
        case .moving: return nil
        }
      }
      return agreement
    }
  }

  /// The other nodes that serve shards, sorted by name.
  package var owners: [RemoteNode] {
    let owners: Set<RemoteNode> = state.withLock { state in
      Set(state.routes.values.compactMap { if case .remote(let node) = $0 { node } else { nil } })
    }
    return owners.sorted { $0.name < $1.name }
  }

  /// The other live nodes, sorted by name.
  package var nodes: [RemoteNode] { state.withLock { $0.nodes } }

  /// Why this node hasn't reached another live node for longer than a lease; nil if it can be reached.
  package func problem(of node: RemoteNode) -> String? { state.withLock { $0.problems[node.name] } }

  /// The names of the other live nodes; nil while this node doesn't know them because it has no connection to the engine.
  package func otherNodes(at now: MonotonicTime) -> Set<String>? {
    guard lease.isValid(at: now) else { return nil }
    return state.withLock { state in state.shardCount.map { _ in Set(state.nodes.map(\.name)) } }
  }

  private static func shard(of topic: String, _ state: State) -> ShardID? {
    state.shardCount.map { ShardID(rawValue: UInt32(ShardHash.shard(of: topic, of: $0))) }
  }

  // MARK: Changes

  /// Changes routes, then calls the observers on this thread.
  ///
  /// - Parameters:
  ///   - shardCount: the number of shards of the cluster; nil leaves it as it is.
  ///   - nodes: the other live nodes; nil leaves them unchanged.
  ///   - problems: why live nodes can't be reached, by their names; nil leaves them unchanged.
  ///   - routes: the routes that change.
  package func update(
    shardCount: Int? = nil, nodes: [RemoteNode]? = nil, problems: [String: String]? = nil,
    _ routes: [ShardID: TopicRoute]
  ) {
    let observers = state.withLock { state in
      if let problems { state.problems = problems }
      if let shardCount { state.shardCount = shardCount }
      if let nodes { state.nodes = nodes.sorted { $0.name < $1.name } }
      state.routes.merge(routes) { $1 }
      return state.observers
    }
    for number in observers.keys.sorted() { observers[number]?() }
  }

  /// Calls `body` after each change, on the thread that makes the change.
  ///
  /// - Returns: the number for ``endObservation(_:)``.
  package func observe(_ body: @escaping @Sendable () -> Void) -> UInt64 {
    state.withLock { state in
      state.lastObserver += 1
      state.observers[state.lastObserver] = body
      return state.lastObserver
    }
  }

  /// Ends an observation. A call in progress may still arrive.
  package func endObservation(_ number: UInt64) {
    state.withLock { $0.observers[number] = nil }
  }
}
