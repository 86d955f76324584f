/// A loss that a test inflicts on a cluster.
enum ClusterLoss: String, CaseIterable {
  case killNode = "kill-node"
  /// Longer than the node's lease.
  case pauseNode = "pause-node"
  case stopNode = "stop-node"
  /// The node hands over its shards and stays.
  case drainNode = "drain-node"
  case killEngine = "kill-engine"
  case killNodes = "kill-nodes"
  case killAll = "kill-all"
  /// Between a node and the other nodes.
  case cutNodeFromNodes = "cut-node-from-nodes"
  /// Between a node and all servers of the engine.
  case cutNodeFromEngine = "cut-node-from-engine"
  /// Between a node and everything except clients.
  case cutNode = "cut-node"
  /// Between a server of the engine and the other servers; nodes reach it.
  case cutEngineServer = "cut-engine-server"
  /// Between a node with a server of the engine, which reach each other, and all others.
  case cutSite = "cut-site"
  /// Packets from a node to the engine are lost; those from the engine arrive.
  case loseToEngine = "lose-to-engine"
  /// Packets from the engine to a node are lost; those to the engine arrive.
  case loseFromEngine = "lose-from-engine"
  /// Each node in turn is stopped and restarted with other programs.
  case rollNodes = "roll-nodes"
  /// Each server of the engine in turn is stopped and restarted, the next one after it has caught up.
  case rollEngine = "roll-engine"
  /// All servers of the engine lose power; all processes end.
  case losePower = "lose-power"

  /// A pair of processes between which packets are lost, in one direction.
  struct Cut: Hashable {
    var from: String
    var to: String
  }

  /// The links to cut.
  ///
  /// - Parameter number: the index of the node or the server.
  func cuts(_ number: Int, nodes: [String], engines: [String]) -> [Cut] {
    func both(_ some: [String], _ others: [String]) -> [Cut] {
      some.flatMap { one in others.flatMap { [Cut(from: one, to: $0), Cut(from: $0, to: one)] } }
    }
    let (node, engine) = (nodes[number], engines[number])
    let (otherNodes, otherEngines) = (nodes.filter { $0 != node }, engines.filter { $0 != engine })
    return switch self {
    case .cutNodeFromNodes: both([node], otherNodes)
    case .cutNodeFromEngine: both([node], engines)
    case .cutNode: both([node], otherNodes + engines)
    case .cutEngineServer: both([engine], otherEngines)
    case .cutSite: both([node, engine], otherNodes + otherEngines)
    case .loseToEngine: engines.map { Cut(from: node, to: $0) }
    case .loseFromEngine: engines.map { Cut(from: $0, to: node) }
    default: []
    }
  }

  var isCut: Bool { !cuts(0, nodes: ["b1", "b2"], engines: ["n1", "n2"]).isEmpty }
  var isLossOfPower: Bool { self == .losePower }
}
