import ReactiveCore
import SluiceWire

@_exported import struct SluiceWire.ClusterInfo

// Requests about the cluster that the broker is a node of. They need the right to administer every topic.
extension Client {
  private static let nodesPerPage: UInt32 = 100
  private static let shardsPerPage: UInt32 = 1000

  /// Why streams and requests wait whose topics no node of the cluster serves, or no node that can be reached. Half a second after the broker's first such
  /// answer its latest one is sent, once for each stream until that is open again.
  package var unserved: AnyPublisher<ClientError, Never> { core.unserved.eraseToAnyPublisher() }

  /// The broker's knowledge of its cluster: all nodes and all shards. Pages of a large cluster are of different moments.
  ///
  /// - Throws: ``ClientError/Code/unsupported`` when the broker isn't a node of a cluster; ``ClientError/Code/permissionDenied``;
  ///   ``ClientError/Code/requestTimeout``; why the client was closed; ``ClientError/Code/cancelled``.
  public func cluster() async throws(ClientError) -> ClusterInfo {
    try await Reply.wait { cluster(completion: $0) }
  }

  public func cluster(completion: @escaping Completion<ClusterInfo>) {
    ask(ClusterShow(nodes: Self.nodesPerPage, shards: Self.shardsPerPage)) {
      [weak self] (result: Result<ClusterInfo, ClientError>) in
      switch result {
      case .failure(let error): completion(.failure(error))
      case .success(let first):
        guard let self else { return completion(.failure(.closedHere)) }
        complete(first, completion)
      }
    }
  }

  /// Requests the missing pages.
  private func complete(_ info: ClusterInfo, _ completion: @escaping Completion<ClusterInfo>) {
    guard info.moreNodes || info.moreShards else { return completion(.success(info)) }
    let request = ClusterShow(
      after: info.nodes.last?.name ?? "", nodes: info.moreNodes ? Self.nodesPerPage : 0,
      firstShard: info.shards.last.map { $0.number + 1 } ?? 0,
      shards: info.moreShards ? Self.shardsPerPage : 0)
    ask(request) { [weak self] (result: Result<ClusterInfo, ClientError>) in
      switch result {
      case .failure(let error): completion(.failure(error))
      case .success(let page):
        guard let self else { return completion(.failure(.closedHere)) }
        var all = info
        all.nodes += page.nodes
        all.shards += page.shards
        all.moreNodes = info.moreNodes && page.moreNodes && !page.nodes.isEmpty
        all.moreShards = info.moreShards && page.moreShards && !page.shards.isEmpty
        complete(all, completion)
      }
    }
  }

  /// Makes a node hand over its shards to the other nodes, or cancels that. The drain persists across restarts. Returns when it is stored; the shards move
  /// afterwards.
  ///
  /// - Parameters:
  ///   - node: the node's name; the node need not be live at present.
  ///   - isWanted: false to cancel the drain.
  /// - Throws: ``ClientError/Code/invalidTopic`` for a name that isn't one; ``ClientError/Code/storageFailed`` when the engine doesn't store it;
  ///   otherwise as ``cluster()``.
  public func drain(_ node: String, _ isWanted: Bool = true) async throws(ClientError) {
    try await Reply.wait { drain(node, isWanted, completion: $0) }
  }

  public func drain(_ node: String, _ isWanted: Bool = true, completion: @escaping Completion<Void>) {
    ask(ClusterDrain(node: node, wanted: isWanted), completion)
  }

  /// Pins a shard to a node while that is live and isn't drained, or cancels that. The pin persists across restarts. Returns when it is stored; the shard
  /// moves afterwards.
  ///
  /// - Parameters:
  ///   - shard: the shard's number.
  ///   - node: the node's name; the node need not be live at present. Nil for the node to which the shard belongs by placement.
  /// - Throws: ``ClientError/Code/invalidSetting`` for a shard that the cluster doesn't have; otherwise as ``drain(_:_:)``.
  public func move(shard: UInt32, to node: String?) async throws(ClientError) {
    try await Reply.wait { move(shard: shard, to: node, completion: $0) }
  }

  public func move(shard: UInt32, to node: String?, completion: @escaping Completion<Void>) {
    ask(ClusterMove(shard: shard, node: node ?? ""), completion)
  }
}
