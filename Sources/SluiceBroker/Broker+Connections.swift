import SluiceAccess
import SluiceIO
import SluiceWire
import Synchronization

// Requests about the connections of all loops.
extension Broker {
  /// The findings of the loops that have answered.
  private struct Findings {
    var missing: Int
    var connections: [ConnectionInfo] = []
    var hasMore = false
    var isClosed = false
  }

  /// From any thread; returns at once. Each loop is asked once.
  func serve(_ request: ConnectionRequest) {
    switch request {
    case .list(let after, let limit, let completion):
      ask { context, findings in
        let (page, hasMore) = context.connections(after: after, limit: limit)
        findings.connections += page
        findings.hasMore = findings.hasMore || hasMore
      } completion: { findings in
        let all = findings.connections.sorted { $0.connection < $1.connection }
        completion(Array(all.prefix(limit)), findings.hasMore || all.count > limit)
      }
    case .close(let connection, let error, let completion):
      ask { context, findings in
        if context.close(connection, with: error) { findings.isClosed = true }
      } completion: {
        completion($0.isClosed)
      }
    case .problems(let now, let completion):
      problemWatch.problems(now: now, in: snapshotWithCluster, completion)
    }
  }

  func snapshotWithCluster(
    _ request: SnapshotRequest, _ completion: @escaping @Sendable (GatheredSnapshot, ClusterInfo?) -> Void
  ) {
    guard let cluster = core.cluster.withLock({ $0 }) else {
      return snapshot(request) { completion($0, nil) }
    }
    cluster.clusterInfo { [self] info in snapshot(request) { completion($0, info) } }
  }

  /// Runs `look` on each loop, then `completion` on one of them.
  private func ask(
    _ look: @escaping @Sendable (LoopContext, inout Findings) -> Void,
    completion: @escaping @Sendable (Findings) -> Void
  ) {
    let findings = SharedFindings(Findings(missing: contexts.count))
    for context in contexts {
      context.loop.execute {
        var part = Findings(missing: 0)
        look(context, &part)
        if let all = findings.add(part) { completion(all) }
      }
    }
  }

  private final class SharedFindings: Sendable {
    private let state: Mutex<Findings>

    init(_ findings: Findings) { state = Mutex(findings) }

    /// Returns all findings once the last part is added; nil before.
    func add(_ part: Findings) -> Findings? {
      state.withLock { state in
        state.missing -= 1
        state.connections += part.connections
        state.hasMore = state.hasMore || part.hasMore
        state.isClosed = state.isClosed || part.isClosed
        return state.missing == 0 ? state : nil
      }
    }
  }
}

extension LoopContext {
  /// The connections of clients on this loop with greater numbers, in the order of their numbers, at most `limit`; and whether there are more. On the
  /// loop.
  fileprivate func connections(after: UInt64, limit: Int) -> (page: [ConnectionInfo], hasMore: Bool) {
    let found = connections.filter { $0.id > after && !$0.isOwnPart }.sorted { $0.id < $1.id }
    return (found.prefix(limit).map { ConnectionInfo($0.snapshot(topics: [])) }, found.count > limit)
  }

  /// Closes the connection of that number; returns whether it is here. On the loop.
  fileprivate func close(_ connection: UInt64, with error: WireError) -> Bool {
    guard let found = connections.first(where: { $0.id == connection }) else { return false }
    found.fail(error)
    return true
  }
}

extension ConnectionInfo {
  /// The description of a connection that the broker sends to clients.
  fileprivate init(_ connection: ConnectionSnapshot) {
    self.init(
      connection: connection.id, client: connection.client, identity: connection.identity,
      peer: connection.peer, security: connection.security, age: connection.age,
      subscriptions: UInt32(clamping: connection.subscriptions),
      publications: UInt32(clamping: connection.publications),
      buffered: UInt64(max(connection.buffered, 0)), received: UInt64(max(connection.received, 0)),
      sent: UInt64(max(connection.sent, 0)))
  }
}
