import SluiceBroker
import SluiceCommand
import SluiceWire

/// A node's cluster in the API.
enum ClusterJSON {
  static func object(_ cluster: ClusterSnapshot) -> JSON {
    let info = cluster.info
    return [
      "node": .text(info.name), "unreadiness": .textUnlessEmpty(info.unreadiness),
      "leaseValid": .flag(cluster.isLeaseValid), "engine": engine(info.engine),
      "engineCopies": .number(cluster.engineCopies),
      "currentEngineCopies": .number(cluster.currentEngineCopies),
      "nodes": .array(info.nodes.map(node)), "shardCount": .exact(info.shardCount),
      "shards": .array(info.shards.map { shard($0, cluster.commits[Int($0.number)]) }),
      "commits": .exact(cluster.commitCounts.reduce(0, +)),
      "commitSeconds": .number(Double(cluster.commitTotal) / 1e9, decimals: 6),
      "takeOvers": .exact(cluster.takeOvers),
      "handedOver": .exact(cluster.handedOver), "lost": .exact(cluster.lost),
      "suspensions": .exact(cluster.suspensions), "expulsions": .exact(cluster.expulsions),
      "interruptions": .exact(cluster.interruptions),
      "recentTakeOvers": .array(cluster.recent.map(takeOver)), "links": .array(cluster.links.map(link)),
    ]
  }

  private static func link(_ link: LinkSnapshot) -> JSON {
    [
      "node": .text(link.node), "connections": .exact(link.connections), "streams": .exact(link.streams),
      "opened": .exact(link.opened), "lost": .exact(link.lost), "failed": .exact(link.failed),
      "bytesReceived": .exact(link.bytesReceived), "bytesSent": .exact(link.bytesSent),
      "recordsReceived": .exact(link.recordsReceived), "recordsSent": .exact(link.recordsSent),
    ]
  }

  private static func engine(_ engine: ClusterInfo.Engine) -> JSON {
    let latency = engine.commitLatency == .max ? Double.nan : Double(engine.commitLatency) / 1e6
    return [
      "connected": .flag(engine.isConnected), "unsafe": .flag(engine.isUnsafe),
      "server": .text(engine.server), "commitLatencySeconds": .number(latency, decimals: 6),
      "problems": .array(engine.problems.map { .text($0) }),
    ]
  }

  private static func node(_ node: ClusterInfo.Node) -> JSON {
    let state =
      switch node.state {
      case .live: "live"
      case .leaving: "leaving"
      case .drained: "drained"
      case .silent: "silent"
      case .unreached: "unreached"
      default: "ended"
      }
    return [
      "name": .text(node.name), "address": .text(node.address), "version": .text(node.version),
      "state": .text(state), "shards": .exact(node.shards),
      "silenceSeconds": .seconds(milliseconds: node.silence),
      "problem": .textUnlessEmpty(node.problem),
    ]
  }

  private static func shard(_ shard: ClusterInfo.Shard, _ commits: ClusterSnapshot.Commits?) -> JSON {
    let state =
      switch shard.state {
      case .held: "held"
      case .moving: "moving"
      default: "free"
      }
    return [
      "number": .exact(shard.number), "state": .text(state), "owner": .textUnlessEmpty(shard.owner),
      "term": .exact(shard.term), "target": .textUnlessEmpty(shard.target),
      "pin": .textUnlessEmpty(shard.pin),
      "commits": .number(commits?.count),
      "commitLatencySeconds": .number(commits.map { Double($0.recent) / 1e9 } ?? .nan, decimals: 6),
    ]
  }

  private static func takeOver(_ takeOver: ClusterSnapshot.TakeOver) -> JSON {
    [
      "shard": .exact(takeOver.shard), "term": .exact(takeOver.term), "cause": .text(takeOver.cause.rawValue),
      "from": .textUnlessEmpty(takeOver.from),
      "seconds": .seconds(milliseconds: takeOver.milliseconds), "time": .number(takeOver.time),
    ]
  }
}
