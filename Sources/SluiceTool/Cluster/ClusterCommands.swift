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
    "sluice cluster", summary: "inspect and administer a cluster of brokers",
    operands: [Operand("COMMAND")],
    details: """
      They need the right to administer every topic, admin on >, and a broker that is a node of a cluster. Any node answers for the whole cluster, with what it knows.
      """,
    examples: [
      "Is everything in order?": "sluice cluster status",
      "Take a node out of service.": "sluice cluster drain n1 --wait",
    ], commands: members.map { $0.page })

  /// Why no node of that name is known; nil for one that is.
  static func complaint(about node: String, in info: ClusterInfo) -> String? {
    let names = info.nodes.map(\.name)
    guard !names.contains(node) else { return nil }
    return
      "no node '\(node)' is known\(Spelling.advice(for: node, in: names, otherwise: "the nodes are \(names.joined(separator: ", "))") { "\($0)" }); --force does it nevertheless"
  }

  /// Connects, and goes on with what the broker's node knows of the cluster; fails if it knows no node of that name.
  ///
  /// - Parameter node: nil to check none.
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

  static let force = CommandOption("force", help: "Also for a node that isn't known at present.")

  static func node(_ text: String) throws(UsageError) -> String {
    guard NodeName.isValid(text) else {
      throw UsageError(
        "'\(text)' can't be the name of a node: it has from 1 to 64 letters, digits, '-' and '_'")
    }
    return text
  }
}

struct ClusterStatusCommand: Command {
  let asJSON: Bool

  static let page = CommandPage(
    "sluice cluster status", summary: "show the cluster in one screen", options: [TopicCommand.json],
    details:
      "Ends with 1 when something is wrong: the node isn't ready, shards have no owner, or a node can't be reached at its address.",
    examples: [
      "Is everything in order?": "sluice cluster status",
      "For a script.": "sluice cluster status --json | jq .problems",
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
      A node that has ended stays in the list for an hour. One is silent when no sign of it has come for longer than a lease and no node could end its session, as while the engine has no majority: \
      it may live or not. One is unreached as long as no other node has reached it at its address: it gets no shards until then, and `sluice cluster status` says why.
      """,
    examples: [
      "All of them.": "sluice cluster nodes",
      "Addresses of those that live, for --server.":
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
      CommandOption("node", value: "NODE", help: "Only shards that this node owns."),
      CommandOption("topic", value: "TOPIC", help: "Only the shard of this topic, which needn't exist."),
      TopicCommand.json,
    ],
    examples: [
      "All of them.": "sluice cluster shards",
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
  /// Nil to take it back.
  let node: String?
  let isForced: Bool
  let isQuiet: Bool

  static let page = CommandPage(
    "sluice cluster move", summary: "have a node own a shard, or take that back",
    operands: [Operand("SHARD"), Operand("NODE", .optional)],
    options: [
      CommandOption("undo", help: "The shard goes to the node to which it belongs by itself; without NODE."),
      ClusterCommand.force, CommandOption("quiet", letter: "q", help: "Print nothing."),
    ],
    details: """
      The node owns the shard as long as it lives and isn't drained; this holds over restarts. The shard moves after the command has ended. Its topics pause for some milliseconds.
      """,
    examples: [
      "A busy shard gets a machine of its own.": "sluice cluster move 17 n3",
      "It goes back.": "sluice cluster move 17 --undo",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    guard let number = UInt32(arguments.operands[0]) else {
      throw UsageError(
        "'\(arguments.operands[0])' isn't a shard's number; sluice cluster shards shows them")
    }
    shard = number
    let name = arguments.operands.dropFirst().first
    guard (name == nil) == arguments.has("undo") else {
      throw UsageError("move needs either the node to which the shard is to go, or --undo")
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
            node.map { "shard \(shard) goes to \($0)" } ?? "shard \(shard) goes where it belongs by itself")
        }
        run.finish(.success)
      }
    }
  }
}

struct ClusterDrainCommand: Command {
  /// How often the nodes are asked for while the command waits.
  private static let interval = Duration.milliseconds(200)

  let node: String
  let isWanted: Bool
  let waits: Bool
  let isForced: Bool
  let isQuiet: Bool

  static let page = CommandPage(
    "sluice cluster drain", summary: "have a node give its shards away, or take that back",
    operands: [Operand("NODE")],
    options: [
      CommandOption("undo", help: "The node may own shards again."),
      CommandOption("wait", help: "End when the node owns no shard any more."), ClusterCommand.force,
      CommandOption("quiet", letter: "q", help: "Print nothing."),
    ],
    details: """
      The node gives its shards to the other nodes, a few at a time, and gets none until --undo, also after a restart. It goes on serving its clients, by way of the owners. A node that is stopped by \
      SIGTERM gives its shards away by itself; draining is for one that is to stay without shards.
      """,
    examples: [
      "Before work on the machine of n1.": "sluice cluster drain n1 --wait",
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
        note(isWanted ? "\(node) gives its \(shards) shards away" : "\(node) may own shards again", run)
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

  /// Why a node keeps its shards although it is drained; nil while another one may have them.
  static func complaint(about node: String, in info: ClusterInfo) -> String? {
    if info.nodes.contains(where: { $0.name != node && $0.state == .live }) { return nil }
    return
      "no other node may own shards, so \(node) keeps them until one joins, is reached, or isn't drained any more; --undo takes the wish back"
  }

  private func waitForShards(_ client: Client, _ run: Run) {
    client.cluster { result in
      switch result {
      case .failure(let error): run.fail(error)
      case .success(let info):
        guard info.shards.contains(where: { $0.owner == node }) else {
          note("\(node) owns no shard", run)
          return run.finish(.success)
        }
        if let complaint = Self.complaint(about: node, in: info) { return run.finish(.failure, complaint) }
        _ = run.loop.schedule(after: Self.interval) { waitForShards(client, run) }
      }
    }
  }
}
