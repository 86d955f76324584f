import SluiceWire
import Synchronization

// Requests about the cluster. They need the right to administer every topic.
extension RequestStream {
  /// The nodes and shards per page. With the engine's problems they take at most 60,000 bytes, which fits the smallest frame that a client may accept.
  static let nodesPerPage = 40
  static let shardsPerPage = 100

  func showCluster(_ frame: ClusterShow) throws(WireError) {
    try streams.client.requireBroker()
    let cluster = try cluster()
    let continuation = streams.continuation(of: stream)
    cluster.clusterInfo { info in
      let page = info.page(for: frame, nodes: Self.nodesPerPage, shards: Self.shardsPerPage)
      continuation.resume { (request: RequestStream) in request.answer(page) }
    }
  }

  func drain(_ frame: ClusterDrain) {
    administerCluster(frame.wanted ? .drainNode(frame.node) : .undrainNode(frame.node)) { cluster, done in
      cluster.drain(frame.node, frame.wanted) { done($0.map(Self.notStored)) }
    }
  }

  func move(_ frame: ClusterMove) {
    administerCluster(.moveShard(frame.shard, node: frame.node)) { cluster, done in
      cluster.clusterInfo { info in
        guard frame.shard < info.shardCount else { return done(Self.unknownShard(frame.shard, info)) }
        cluster.pin(Int(frame.shard), to: frame.node.isEmpty ? nil : frame.node) {
          done($0.map(Self.notStored))
        }
      }
    }
  }

  private func cluster() throws(WireError) -> any ClusterAdministration {
    if let cluster = streams.core.cluster.withLock({ $0 }) { return cluster }
    throw WireError(
      .unsupported,
      "this broker isn't a node of a cluster; sluiced --cluster nats://A,B,C --node NAME --advertise HOST:PORT starts one that is"
    )
  }

  private static func notStored(_ reason: String) -> WireError {
    WireError(.storageFailed, "the engine hasn't stored it: \(reason); try again")
  }

  private static func unknownShard(_ shard: UInt32, _ info: ClusterInfo) -> WireError {
    guard info.shardCount > 0 else {
      return WireError(
        .unsupported, "the node doesn't know yet how many shards the cluster has: \(info.unreadiness)")
    }
    return WireError(
      .invalidSetting, "there is no shard \(shard); the cluster has those from 0 to \(info.shardCount - 1)")
  }

  /// Runs an administrative request of the cluster and writes its audit line, whatever the result. A missing permission is reported separately.
  private func administerCluster(
    _ action: BrokerEvent.Administration,
    _ body: (any ClusterAdministration, @escaping @Sendable (WireError?) -> Void) -> Void
  ) {
    do { try streams.client.requireBroker() } catch { return streams.refuse(stream, Fault(error)) }
    let cluster: any ClusterAdministration
    do { cluster = try self.cluster() } catch {
      streams.client.report { .administered($0, action, topic: "", refusal: error) }
      return streams.refuse(stream, Fault(error))
    }
    let continuation = streams.continuation(of: stream)
    body(cluster) { error in
      continuation.resume { (request: RequestStream) in
        request.streams.client.report { .administered($0, action, topic: "", refusal: error) }
        if let error {
          request.streams.refuse(request.stream, Fault(error))
        } else {
          request.answer(Done())
        }
      }
    }
  }
}
