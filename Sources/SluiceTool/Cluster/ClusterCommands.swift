import Glibc
import SluiceClient
import SluiceCommand
import SluiceIO
import SluiceStore
import SluiceWire

struct ClusterCommand: CommandGroup {
  static var members: [any Command.Type] {
    [
      ClusterStatusCommand.self, ClusterNodesCommand.self, ClusterShardsCommand.self, ClusterMoveCommand.self,
      ClusterDrainCommand.self,
    ]
  }

  static let page = CommandPage(
    "sluice cluster", summary: "show and administer a cluster of brokers",
    operands: [Operand("COMMAND")],
    details: """
      Needs the permission to administer every topic, admin on >, and a broker that is a node of a cluster. Any node answers for the whole cluster.
      """,
    examples: [
      "Is everything in order?": "sluice cluster status",
      "Take a node out of service.": "sluice cluster drain n1 --wait",
    ], commands: members.map { $0.page })

  /// The error for a node name that isn't known; nil for a known one.
  static func complaint(about node: String, in info: ClusterInfo) -> String? {
    let names = info.nodes.map(\.name)
    guard !names.contains(node) else { return nil }
    return
      "node '\(node)' isn't known\(Spelling.advice(for: node, in: names, otherwise: "the nodes are \(names.joined(separator: ", "))") { "\($0)" }); --force does it anyway"
  }

  /// Connects, and calls `body` with the cluster's state; ends the run if `node` isn't known.
  ///
  /// - Parameter node: the name to check; nil to check none.
  static func withCluster(
    knowing node: String?, _ run: Run, _ body: @escaping @Sendable (Client, ClusterInfo) -> Void
  ) {
    run.connect { client in
      client.cluster { result in
        switch result {
        case .failure(let error): run.fail(error)
        case .success(let info):
          if let node, let complaint = complaint(about: node, in: info) {
            return run.finish(.failure, complaint)
          }
          body(client, info)
        }
      }
    }
  }

  static let force = CommandOption("force", help: "Accept the name of a node that isn't known at the moment.")

  static func node(_ text: String) throws(UsageError) -> String {
    guard NodeName.isValid(text) else {
      throw UsageError(
        "'\(text)' can't be the name of a node: use 1 to 64 letters, digits, '-' and '_'")
    }
    return text
  }
}

struct ClusterStatusCommand: Command {
  let asJSON: Bool

  static let page = CommandPage(
    "sluice cluster status", summary: "show the cluster's state and problems", options: [TopicCommand.json],
    details:
      "Ends with 1 if there is a problem: the node isn't ready, shards have no owner, or a node can't be reached at its address.",
    examples: [
      "Is everything in order?": "sluice cluster status",
      "Problems, for a script.": "sluice cluster status --json | jq .problems",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    asJSON = arguments.has("json")
  }

  func start(_ run: Run) {
    run.connect { client in
      client.cluster { result in
        switch result {
        case .failure(let error): run.fail(error)
        case .success(let info):
          let text = asJSON ? ClusterTable.object(info).line : ClusterTable.status(info)
          guard run.write(text) else { return }
          run.finish(ClusterTable.problems(info).isEmpty ? .success : .failure)
        }
      }
    }
  }
}

struct ClusterNodesCommand: Command {
  let asJSON: Bool

  static let page = CommandPage(
    "sluice cluster nodes", summary: "list the nodes of the cluster", options: [TopicCommand.json],
    details: """
      A node that has ended stays in the list for an hour. A node is silent if its last heartbeat is older than a lease and no node could end its session, for \
      example while the engine has no majority: it may be running or not. A node is unreached until another node has connected to its address: it gets no shards \
      until then, and `sluice cluster status` prints why.
      """,
    examples: [
      "All nodes.": "sluice cluster nodes",
      "The addresses of live nodes, for --server.":
        "sluice cluster nodes --json | jq -rs '[.[] | select(.state == \"live\") | .address] | join(\",\")'",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    asJSON = arguments.has("json")
  }

  func start(_ run: Run) {
    run.connect { client in
      client.cluster { result in
        run.report(result) { info in
          asJSON ? info.nodes.map { ClusterTable.object($0).line }.joined() : ClusterTable.nodes(info)
        }
      }
    }
  }
}

struct ClusterShardsCommand: Command {
  let asJSON: Bool
  let node: String?
  let topic: String?

  static let page = CommandPage(
    "sluice cluster shards", summary: "list the shards of the cluster and their owners",
    options: [
      CommandOption("node", value: "NODE", help: "Only shards that NODE owns."),
      CommandOption("topic", value: "TOPIC", help: "Only the shard of TOPIC, which needn't exist."),
      TopicCommand.json,
    ],
    examples: [
      "All shards.": "sluice cluster shards",
      "Which node serves this topic?": "sluice cluster shards --topic orders",
      "How many does each node own?": "sluice cluster shards --json | jq -r .owner | sort | uniq -c",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    asJSON = arguments.has("json")
    node = arguments.text("node")
    topic = arguments.text("topic")
  }

  func start(_ run: Run) {
    run.connect { client in
      client.cluster { result in
        run.report(result) { info in
          let only = topic.map { UInt32(ShardHash.shard(of: $0, of: Int(info.shardCount))) }
          let shards = info.shards.filter {
            (node == nil || $0.owner == node) && (only == nil || $0.number == only)
          }
          return asJSON
            ? shards.map { ClusterTable.object($0, info).line }.joined() : ClusterTable.shards(shards, info)
        }
      }
    }
  }
}

struct ClusterMoveCommand: Command {
  let shard: UInt32
  /// Nil to undo an assignment.
  let node: String?
  let isForced: Bool
  let isQuiet: Bool

  static let page = CommandPage(
    "sluice cluster move", summary: "assign a shard to a node, or undo that",
    operands: [Operand("SHARD"), Operand("NODE", .optional)],
    options: [
      CommandOption("undo", help: "Let the cluster choose the shard's node again; without NODE."),
      ClusterCommand.force, CommandOption("quiet", letter: "q", help: "Print nothing."),
    ],
    details: """
      The node owns the shard while it runs and isn't drained, also after restarts. The command doesn't wait for the move, which pauses the shard's topics for \
      some milliseconds.
      """,
    examples: [
      "Give a busy shard a machine of its own.": "sluice cluster move 17 n3",
      "Let the cluster choose the node again.": "sluice cluster move 17 --undo",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    guard let number = UInt32(arguments.operands[0]) else {
      throw UsageError(
        "'\(arguments.operands[0])' isn't a shard's number; sluice cluster shards prints them")
    }
    shard = number
    let name = arguments.operands.dropFirst().first
    guard (name == nil) == arguments.has("undo") else {
      throw UsageError("move needs either NODE, to which the shard is assigned, or --undo")
    }
    if let name { node = try ClusterCommand.node(name) } else { node = nil }
    isForced = arguments.has("force")
    isQuiet = arguments.has("quiet")
  }

  func start(_ run: Run) {
    ClusterCommand.withCluster(knowing: isForced ? nil : node, run) { client, _ in
      client.move(shard: shard, to: node) { result in
        if case .failure(let error) = result { return run.fail(error) }
        if !isQuiet {
          run.note(
            node.map { "assigned shard \(shard) to \($0)" }
              ?? "the cluster chooses the node of shard \(shard) again")
        }
        run.finish(.success)
      }
    }
  }
}

struct ClusterDrainCommand: Command {
  /// How often the command checks the nodes while it waits.
  private static let interval = Duration.milliseconds(200)

  let node: String
  let isWanted: Bool
  let waits: Bool
  let isForced: Bool
  let isQuiet: Bool

  static let page = CommandPage(
    "sluice cluster drain", summary: "hand over all shards of a node, or undo that",
    operands: [Operand("NODE")],
    options: [
      CommandOption("undo", help: "Allow the node to own shards again."),
      CommandOption("wait", help: "Wait until the node owns no shards."), ClusterCommand.force,
      CommandOption("quiet", letter: "q", help: "Print nothing."),
    ],
    details: """
      The node hands its shards over to the other nodes, a few at a time, and gets none until --undo, also after a restart. It keeps serving its clients through \
      the owners. A node that is stopped by SIGTERM hands its shards over anyway; drain a node that is to keep running without shards.
      """,
    examples: [
      "Before maintenance of n1.": "sluice cluster drain n1 --wait",
      "After it.": "sluice cluster drain n1 --undo",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    try arguments.allowOne(of: "undo", "wait")
    node = try ClusterCommand.node(arguments.operands[0])
    isWanted = !arguments.has("undo")
    waits = arguments.has("wait")
    isForced = arguments.has("force")
    isQuiet = arguments.has("quiet")
  }

  func start(_ run: Run) {
    ClusterCommand.withCluster(knowing: isWanted && !isForced ? node : nil, run) { client, info in
      let done: Client.Completion<Void> = { result in
        if case .failure(let error) = result { return run.fail(error) }
        let shards = info.nodes.first { $0.name == node }?.shards ?? 0
        note(isWanted ? "\(node) hands over its \(shards) shards" : "\(node) may own shards again", run)
        if waits { return waitForShards(client, run) }
        if isWanted, shards > 0, let complaint = Self.complaint(about: node, in: info) {
          note(complaint, run)
        }
        run.finish(.success)
      }
      if isWanted {
        client.drain(node: node, completion: done)
      } else {
        client.undrain(node: node, completion: done)
      }
    }
  }

  private func note(_ text: String, _ run: Run) {
    if !isQuiet { run.note(text) }
  }

  /// The reason why a drained node keeps its shards; nil if another node can own them.
  static func complaint(about node: String, in info: ClusterInfo) -> String? {
    if info.nodes.contains(where: { $0.name != node && $0.state == .live }) { return nil }
    return
      "\(node) keeps its shards until another node can own them: start one, or undo a drain with sluice cluster drain NODE --undo"
  }

  private func waitForShards(_ client: Client, _ run: Run) {
    client.cluster { result in
      switch result {
      case .failure(let error): run.fail(error)
      case .success(let info):
        guard info.shards.contains(where: { $0.owner == node }) else {
          note("\(node) owns no shards", run)
          return run.finish(.success)
        }
        if let complaint = Self.complaint(about: node, in: info) { return run.finish(.failure, complaint) }
        _ = run.loop.schedule(after: Self.interval) { waitForShards(client, run) }
      }
    }
  }
}
