import SluiceBroker
import SluiceWire

/// The metrics of a node's cluster. A broker of one node has none of them.
enum ClusterMetrics {
  static func write(_ cluster: ClusterSnapshot, to text: inout MetricsText) {
    let info = cluster.info
    writeNodes(info, to: &text)
    text.family(
      "sluice_cluster_node", .gauge,
      "1, with the name of this node. Metrics of topics, cursors and groups are about those that it owns.")
    text.sample(UInt64(1), ["node": info.name])
    text.single("sluice_cluster_shards", .gauge, "Shards of the cluster.", UInt64(info.shardCount))
    text.single("sluice_cluster_shards_owned", .gauge, "Shards that this node owns.", UInt64(cluster.owned))
    text.single(
      "sluice_cluster_shards_moving", .gauge,
      "Shards of the cluster whose owners are about to give them away.",
      UInt64(info.shards.count { $0.state == .moving }))
    text.single(
      "sluice_cluster_shards_free", .gauge,
      "Shards of the cluster that no node owns: their topics can't be used.",
      UInt64(info.shards.count { $0.state == .free }))
    text.single(
      "sluice_cluster_ready", .gauge, "1 while the node is ready to serve, as /readyz says; 0 otherwise.",
      flag(info.unreadiness.isEmpty))
    text.single(
      "sluice_cluster_lease_valid", .gauge,
      "1 while the node's lease is valid; 0 while it may neither grant nor acknowledge as an owner.",
      flag(cluster.isLeaseValid))
    writeEngine(cluster, to: &text)
    writeCommits(cluster, to: &text)
    writeTakeOvers(cluster, to: &text)
    writeLinks(cluster.links, to: &text)
  }

  private static func flag(_ value: Bool) -> UInt64 { value ? 1 : 0 }

  private static func writeNodes(_ info: ClusterInfo, to text: inout MetricsText) {
    text.family("sluice_cluster_nodes", .gauge, "Nodes of the cluster, by state.")
    let states: [(String, ClusterInfo.Node.State)] = [
      ("live", .live), ("leaving", .leaving), ("drained", .drained), ("silent", .silent),
      ("unreached", .unreached),
      ("ended", .ended),
    ]
    for (name, state) in states {
      text.sample(UInt64(info.nodes.count { $0.state == state }), ["state": name])
    }
    text.single(
      "sluice_cluster_nodes_unreachable", .gauge,
      "Nodes that live and that this node, or any other one, can't reach at their address.",
      UInt64(info.nodes.count { !$0.problem.isEmpty }))
  }

  private static func writeEngine(_ cluster: ClusterSnapshot, to text: inout MetricsText) {
    let engine = cluster.info.engine
    text.single(
      "sluice_cluster_engine_connected", .gauge, "1 while the node is connected to the engine; 0 otherwise.",
      flag(engine.isConnected))
    text.single(
      "sluice_cluster_engine_unsafe", .gauge,
      "1 if the node runs with --engine-unsafe, so that acknowledged records may be lost; 0 otherwise.",
      flag(engine.isUnsafe))
    if let copies = cluster.engineCopies, let current = cluster.currentEngineCopies {
      text.single(
        "sluice_cluster_engine_copies", .gauge,
        "Copies of what the engine stores, on servers of their own, those of lost servers included: of the stream that has lost most.",
        UInt64(copies))
      text.single(
        "sluice_cluster_engine_copies_current", .gauge,
        "Copies of what the engine stores that have everything. Without a majority of them nothing is stored.",
        UInt64(current))
    }
    if engine.commitLatency != .max {
      text.single(
        "sluice_cluster_renewal_latency_seconds", .gauge, unit: "seconds",
        "How long the engine took to store the node's last message, which is mostly the renewal of its lease.",
        Double(engine.commitLatency) / 1e6)
    }
    text.single(
      "sluice_cluster_engine_interruptions", .counter, "How often the connection to the engine was lost.",
      cluster.interruptions)
    text.single(
      "sluice_cluster_suspensions", .counter, "How often the node's lease couldn't be renewed in time.",
      cluster.suspensions)
    text.single(
      "sluice_cluster_expulsions", .counter, "How often other nodes have ended the node's session.",
      cluster.expulsions)
  }

  private static func writeCommits(_ cluster: ClusterSnapshot, to text: inout MetricsText) {
    text.histogram(
      "sluice_cluster_commit_seconds",
      "How long the engine took to store commits of this node's shards, from sending them to its acknowledgement.",
      bounds: cluster.commitBounds, counts: cluster.commitCounts, sum: cluster.commitTotal)
    text.family(
      "sluice_cluster_shard_commit_latency_seconds", .gauge, unit: "seconds",
      "How long the engine took lately to store commits of a shard that this node owns.")
    for (shard, commits) in cluster.commits.sorted(by: { $0.key < $1.key }) {
      text.sample(Double(commits.recent) / 1e9, ["shard": String(shard)])
    }
  }

  /// The label names the other node.
  private static func writeLinks(_ links: [LinkSnapshot], to text: inout MetricsText) {
    func family(
      _ name: String, _ kind: MetricsText.Kind, unit: String? = nil, _ help: String,
      _ value: KeyPath<LinkSnapshot, Int>
    ) {
      text.family("sluice_cluster_link\(name)", kind, unit: unit, help)
      for link in links { text.sample(UInt64(link[keyPath: value]), ["peer": link.node]) }
    }
    family(
      "s", .gauge, "Open connections to another node, on which streams of clients are passed on.",
      \.connections)
    family("_streams", .gauge, "Streams on the connections to another node.", \.streams)
    family("s_opened", .counter, "Connections to another node that were opened.", \.opened)
    family(
      "s_lost", .counter,
      "Connections to another node that were lost; their clients have opened their streams again.",
      \.lost)
    family("s_failed", .counter, "Attempts to connect to another node that failed.", \.failed)
    family(
      "_received_bytes", .counter, unit: "bytes", "Bytes of frames that came from another node.",
      \.bytesReceived)
    family("_sent_bytes", .counter, unit: "bytes", "Bytes of frames sent to another node.", \.bytesSent)
    family(
      "_received_records", .counter, "Records of another node's topics that it has delivered to this one.",
      \.recordsReceived)
    family(
      "_sent_records", .counter, "Records that clients of this node have published to another node's topics.",
      \.recordsSent)
  }

  private static func writeTakeOvers(_ cluster: ClusterSnapshot, to text: inout MetricsText) {
    text.family("sluice_cluster_take_overs", .counter, "Shards that this node has taken over, by cause.")
    for cause in ClusterSnapshot.Cause.allCases {
      text.sample(cluster.causes[cause] ?? 0, ["cause": cause.rawValue])
    }
    text.histogram(
      "sluice_cluster_take_over_seconds",
      "How long shards couldn't be used that this node has taken over: from the former owner's last sign, or the beginning of the hand-over.",
      bounds: ClusterSnapshot.bounds.map { $0 == .max ? .max : $0 * 1_000_000 }, counts: cluster.durations,
      sum: cluster.totalMilliseconds &* 1_000_000)
    text.single(
      "sluice_cluster_hand_overs", .counter, "Shards that this node has begun to give to other nodes.",
      cluster.handedOver)
    text.single(
      "sluice_cluster_shards_lost", .counter,
      "Shards that this node has lost to another one, or with its lease.", cluster.lost)
  }
}
