import SluiceClient
import SluiceCommand

/// A cluster, for people and as objects of JSON.
enum ClusterTable {
  // MARK: In one screen

  /// The problems of the cluster, a sentence each.
  static func problems(_ info: ClusterInfo) -> [String] {
    var problems: [String] = []
    if !info.unreadiness.isEmpty { problems.append(info.unreadiness) }
    for problem in info.engine.problems where !info.unreadiness.contains(problem) { problems.append(problem) }
    problems += info.nodes.map(\.problem).filter { !$0.isEmpty }
    let free = freeShards(info)
    if free > 0 {
      problems.append(
        "\(free) of \(info.shardCount) shards \(free == 1 ? "has no owner: its" : "have no owner: their") topics can't be used"
      )
    }
    return problems
  }

  static func status(_ info: ClusterInfo) -> String {
    let problems = problems(info)
    var rows = [
      ["node", "\(info.name), \(info.unreadiness.isEmpty ? "ready" : "not ready")"],
      ["engine", engine(info.engine)],
      ["nodes", nodeCounts(info)],
      ["shards", shardCounts(info)],
    ]
    if let takeOvers = info["take_overs"], takeOvers > 0 {
      rows.append(["taken over", "\(Magnitude.grouped(takeOvers)) shards by this node since its start"])
    }
    if let commits = info["commits"], let time = info["commit_microseconds"], commits > 0 {
      rows.append(
        [
          "commits",
          "\(Magnitude.grouped(commits)) by this node since its start, \(milliseconds(time / commits)) each",
        ])
    }
    rows += problems.map { ["problem", $0] }
    if problems.isEmpty { rows.append(["problems", "none"]) }
    return TextTable.render(rows, leftColumns: 2)
  }

  /// The rows of a node in the status of the broker.
  static func summary(_ info: ClusterInfo) -> [[String]] {
    let owned = "\(info.shardCount), \(owned(info)) owned by this node"
    let free = freeShards(info)
    return [
      ["node", "\(info.name), \(info.unreadiness.isEmpty ? "ready" : "not ready")"],
      ["nodes", nodeCounts(info)], ["shards", free == 0 ? owned : "\(owned), \(free) without an owner"],
    ]
  }

  static func summaryObject(_ info: ClusterInfo) -> JSON {
    [
      "node": .text(info.name), "ready": .flag(info.unreadiness.isEmpty),
      "nodes": .number(info.nodes.count),
      "live_nodes": .number(info.nodes.count { $0.state != .ended && $0.state != .silent }),
      "shards": .number(info.shardCount), "owned_shards": .number(owned(info)),
      "shards_without_owner": .number(freeShards(info)),
    ]
  }

  private static func owned(_ info: ClusterInfo) -> Int {
    info.shards.count { $0.state != .free && $0.owner == info.name }
  }

  private static func freeShards(_ info: ClusterInfo) -> Int { info.shards.count { $0.state == .free } }

  private static func engine(_ engine: ClusterInfo.Engine) -> String {
    var parts = [engine.isConnected ? "connected to \(engine.server)" : "not connected"]
    if engine.commitLatency != .max {
      parts.append("stored the last message in \(milliseconds(engine.commitLatency))")
    }
    if engine.isUnsafe { parts.append("unsafe: it may lose acknowledged records") }
    return parts.joined(separator: ", ")
  }

  private static func milliseconds(_ microseconds: UInt64) -> String {
    "\(Magnitude.fixed(Double(microseconds) / 1000, decimals: 1)) ms"
  }

  private static func nodeCounts(_ info: ClusterInfo) -> String {
    let states: [(ClusterInfo.Node.State, String)] = [
      (.live, "live"), (.leaving, "leaving"), (.drained, "drained"), (.silent, "silent"),
      (.unreached, "unreached"), (.ended, "ended"),
    ]
    let counts = states.compactMap { state, word in
      let count = info.nodes.count { $0.state == state }
      return count == 0 ? nil : "\(count) \(word)"
    }
    return counts.isEmpty ? "none" : counts.joined(separator: ", ")
  }

  private static func shardCounts(_ info: ClusterInfo) -> String {
    let owners = info.nodes.filter { $0.shards > 0 }.map { "\($0.shards) on \($0.name)" }
    let moving = info.shards.count { $0.state == .moving }
    var text = "\(info.shardCount)"
    if !owners.isEmpty { text += ": " + owners.joined(separator: ", ") }
    if moving > 0 { text += "; \(moving) moving" }
    return text
  }

  static func object(_ info: ClusterInfo) -> JSON {
    [
      "node": .text(info.name), "problems": .array(problems(info).map { .text($0) }),
      "engine": [
        "connected": .flag(info.engine.isConnected), "unsafe": .flag(info.engine.isUnsafe),
        "server": .text(info.engine.server),
        "commit_latency_us": .number(
          info.engine.commitLatency == .max ? nil : info.engine.commitLatency),
      ],
      "nodes": .array(info.nodes.map { object($0) }), "shards": .array(info.shards.map { object($0, info) }),
      "numbers": .object(info.numbers.map { ($0.name, .number($0.value)) }),
    ]
  }

  // MARK: Nodes

  static func state(_ state: ClusterInfo.Node.State) -> String {
    switch state {
    case .live: "live"
    case .leaving: "leaving"
    case .drained: "drained"
    case .ended: "ended"
    case .silent: "silent"
    case .unreached: "unreached"
    default: "state-\(state.rawValue)"
    }
  }

  static func nodes(_ info: ClusterInfo) -> String {
    guard !info.nodes.isEmpty else { return "" }
    return TextTable.render(
      [["NODE", "ADDRESS", "STATE", "VERSION", "SHARDS", "LAST SEEN"]]
        + info.nodes.map { node in
          [
            node.name, node.address, state(node.state), node.version, "\(node.shards)",
            "\(TimeSpan.rounded(.milliseconds(Int64(clamping: node.silence)))) ago",
          ]
        }, leftColumns: 4)
  }

  static func object(_ node: ClusterInfo.Node) -> JSON {
    [
      "node": .text(node.name), "address": .text(node.address), "version": .text(node.version),
      "state": .text(state(node.state)), "shards": .number(node.shards), "silent_ms": .number(node.silence),
      "problem": .textUnlessEmpty(node.problem),
    ]
  }

  // MARK: Shards

  static func state(_ state: ClusterInfo.Shard.State) -> String {
    switch state {
    case .held: "held"
    case .moving: "moving"
    case .free: "free"
    default: "state-\(state.rawValue)"
    }
  }

  /// - Parameter info: the state of the node that answered, with the commit times of its own shards.
  static func shards(_ shards: [ClusterInfo.Shard], _ info: ClusterInfo) -> String {
    guard !shards.isEmpty else { return "" }
    return TextTable.render(
      [["OWNER", "STATE", "BELONGS TO", "MOVED TO", "SHARD", "TERM", "COMMIT"]]
        + shards.map { shard in
          [
            shard.owner.isEmpty ? "-" : shard.owner, state(shard.state), shard.target, shard.pin,
            "\(shard.number)", "\(shard.term)",
            info[ClusterInfo.shardCommitLatency(Int(shard.number))].map(milliseconds) ?? "-",
          ]
        }, leftColumns: 4)
  }

  static func object(_ shard: ClusterInfo.Shard, _ info: ClusterInfo) -> JSON {
    [
      "shard": .number(shard.number), "owner": .textUnlessEmpty(shard.owner),
      "state": .text(state(shard.state)), "term": .number(shard.term),
      "target": .textUnlessEmpty(shard.target),
      "pin": .textUnlessEmpty(shard.pin),
      "commit_latency_us": .number(info[ClusterInfo.shardCommitLatency(Int(shard.number))]),
    ]
  }
}
