import SluiceEngineModel
import SluiceIO
import SluiceNATS
import SluiceSimulation

@testable import SluiceCluster

/// Nodes and an engine on one thread, made from a seed, with an oracle that checks all of them.
final class ClusterScene {
  let world: SimulatedWorld
  let engine: EngineModel
  let oracle = ControlOracle()
  private(set) var members: [ModelMember] = []
  private(set) var violations: [String] = []
  private(set) var takeOvers: [TakeOver] = []
  var shards = 16
  var flaw = ClusterFlaw.none
  var change: (inout ClusterOptions) -> Void = { _ in }
  private var aliases: [String: [NATSAddress]] = [:]

  init(seed: UInt64, conditions: SimulatedConditions = SimulatedConditions()) {
    world = SimulatedWorld(seed: seed, loops: 0, conditions: conditions)
    engine = EngineModel(in: world)
    engine.committed = { [oracle, unowned world] stream, message in
      guard stream == ControlRecord.stream else { return }
      oracle.committed(message)
      let text = String(decoding: message.payload, as: UTF8.self)
      world.trace?(
        "\(world.now.nanoseconds / 1_000_000) stored \(message.sequence) \(message.subject) \(text)")
    }
  }

  deinit {
    for member in running { member.perform { $0.close() } }
  }

  /// A node's own addresses of the engine's servers.
  func ways(of name: String) -> [NATSAddress] {
    if let known = aliases[name] { return known }
    let made = engine.makeAliases("10.2.\(aliases.count + 1)")
    aliases[name] = made
    return made
  }

  /// Starts a node, or restarts one.
  @discardableResult
  func start(_ name: String) throws -> ModelMember {
    members.removeAll { $0.name == name && !$0.isRunning }
    var options = ClusterOptions(name: name, advertisedAddress: "\(name):7420", engine: ways(of: name))
    options.shards = shards
    options.nats.seed = world.random.next()
    options.nats.usesDiscoveredServers = false
    change(&options)
    let member = try ModelMember(options, in: world, flaw: flaw) { [unowned self] in check($0, $1) }
    members.append(member)
    return member
  }

  func member(_ name: String) -> ModelMember? { members.first { $0.name == name && $0.isRunning } }

  var running: [ModelMember] { members.filter(\.isRunning) }

  // MARK: The oracle

  /// Two nodes can start to believe that they own the same shard only when one of them gets an event.
  private func check(_ member: ModelMember, _ event: ClusterEvent) {
    world.trace?("\(world.now.nanoseconds / 1_000_000) \(member.name): \(event)")
    switch event {
    case .gained, .resumed, .joined: checkBeliefs()
    case .closing:
      if member.closing.count > max(member.node.options.maximumMoves, shards / 32) {
        violations.append("\(member.name) gives \(member.closing.count) shards away at a time")
      }
    case .takenOver(let takeOver): takeOvers.append(takeOver)
    default: break
    }
  }

  private func checkBeliefs() {
    var owners: [Int: String] = [:]
    for member in running {
      for (shard, term) in member.beliefs(at: world.now) {
        if let other = owners.updateValue("\(member.name) (term \(term))", forKey: shard) {
          violations.append("\(member.name) (term \(term)) and \(other) believe to have shard \(shard)")
        }
      }
    }
  }

  var allViolations: [String] { violations + oracle.violations }

  /// Whether each shard is at its target, and all nodes know it.
  var isSettled: Bool {
    let nodes = running
    guard !nodes.isEmpty, nodes.allSatisfy({ $0.node.control.session.session != nil }) else { return false }
    let pins = nodes[0].node.control.directory.pins
    let drained = nodes[0].node.control.directory.drained
    let open = nodes.map(\.name).filter { !drained.contains($0) }
    let placement = Placement(nodes: open.isEmpty ? nodes.map(\.name) : open, pins: pins)
    return (0..<shards).allSatisfy { shard in
      let target = placement.target(of: shard)
      return nodes.allSatisfy { member in
        switch member.node.control.route(of: shard) {
        case .local: member.name == target
        case .remote(let node, let address, _): node == target && address == "\(node):7420"
        case .moving: false
        }
      }
    }
  }

  /// The state of each node, for messages.
  var summary: String {
    running.map { member in
      let status = member.node.status
      let nodes = status.nodes.map { "\($0.name) \($0.state) \($0.shards)" }
      let lost = status.shards.filter { $0.owner != $0.target }.map {
        "\($0.number) \($0.state) \($0.owner ?? "-") wants \($0.target ?? "-") \(member.node.control.leases[$0.number].map { "\($0.phase)" } ?? "-")"
      }
      return "\(member.name): \(status.unreadiness ?? "ready"), nodes \(nodes), elsewhere \(lost)"
    }.joined(separator: "; ")
  }

  func settle(limit: Duration) -> Bool { world.run(limit: limit) { self.isSettled } }
}
