import SluiceEngineModel
import SluiceIO
import SluiceNATS
import SluiceSimulation
import SluiceStore

@testable import SluiceCluster

/// A fault, or a repair, in a ``WholeStory``.
enum StoryFault: String, CaseIterable {
  // Faults of a node.
  case kill, start, stall
  /// Cuts a node from all servers of the engine.
  case cut
  /// Restores all connections of a node.
  case heal
  // Faults of a server of the engine.
  case lag, crash, restart
  // Commands of operators.
  case drain, undrain
  /// Cuts two nodes from each other, in both directions.
  case cutNodes
  /// Cuts a node from one server of the engine.
  case cutServer
  /// Pauses the server that leads a shard's stream, or the leases' stream, until there is a restart.
  case pauseLeader
  /// The leader of a shard's stream, or of the leases' stream, steps down.
  case stepDown
  /// A server of the engine loses the others, but not its clients.
  case isolate
  /// The clocks of all brokers or of the engine's servers jump.
  case jump

  /// The faults that break something in any state.
  static let breaking: [Self] =
    formerBreaking + [.cutNodes, .cutServer, .pauseLeader, .stepDown, .isolate, .jump]
  static let weighted = allCases + [.kill, .stall, .heal, .cutNodes, .cutNodes, .undrain]

  /// The faults that existed when the retained seeds in ``WholeClusterSeedTests`` failed.
  static let formerBreaking: [Self] = [.kill, .stall, .cut, .lag, .crash, .drain]
  static let formerWeighted: [Self] = [
    .kill, .start, .stall, .cut, .heal, .lag, .crash, .restart, .drain, .undrain, .kill, .start, .stall,
  ]
}

/// Injects faults into a cluster, drawn from its seed, and counts those that had an effect.
final class StoryFaults {
  private unowned let cluster: WholeCluster
  private let names: [String]
  private(set) var counts: [StoryFault: Int] = [:]

  init(_ cluster: WholeCluster, nodes names: [String]) {
    self.cluster = cluster
    self.names = names
  }

  private var world: SimulatedWorld { cluster.world }
  private var engine: EngineModel { cluster.engine }

  private func duration(_ range: ClosedRange<Duration>) -> Duration { world.random.next(in: range) }

  private func server() -> Int { world.random.next(in: 0...2) }

  /// Draws the next fault; stopped processes are soon restarted.
  func draw(mustBreak: Bool) -> StoryFault {
    if mustBreak { return cluster.pick(StoryFault.breaking) }
    if stopped != nil, !world.random.oneIn(3) { return .start }
    if stoppedServer != nil, !world.random.oneIn(3) { return .restart }
    return cluster.pick(StoryFault.weighted)
  }

  func make(_ fault: StoryFault) throws {
    if try happens(fault, to: cluster.node(cluster.pick(names))) { counts[fault, default: 0] += 1 }
  }

  /// Returns whether the fault had an effect.
  private func happens(_ fault: StoryFault, to node: WholeNode?) throws -> Bool {
    guard let node = fault == .start ? stopped ?? node : node else { return false }
    switch fault {
    case .kill:
      guard cluster.running.count > 1, node.isRunning else { return false }
      node.kill()
    case .start:
      guard !node.isRunning else { return false }
      try cluster.start(node.name)
    case .stall:
      guard node.isRunning else { return false }
      let length = duration(.milliseconds(100)...(.seconds(6)))
      for loop in node.loops { loop.stall(for: length) }
    case .cut: cluster.cutEngine(from: node.name)
    case .heal: heal(node.name)
    case .drain: node.member.drain(cluster.pick(names)) { _ in }
    case .undrain: node.member.drain(cluster.pick(names), false) { _ in }
    case .cutNodes:
      let other = cluster.pick(names)
      guard other != node.name else { return false }
      cluster.cut(node.name, other)
    case .cutServer:
      let way = cluster.addresses(for: node.name)[server()]
      world.network.cut(.host(way.host, port: way.port))
    case .lag, .crash, .restart, .pauseLeader, .stepDown, .isolate, .jump: return happens(fault)
    }
    return true
  }

  /// Injects a fault of the engine.
  private func happens(_ fault: StoryFault) -> Bool {
    switch fault {
    case .lag: engine.servers[server()].lag = duration(.zero...(.seconds(2)))
    case .crash: return change(server(), engine.crash)
    case .restart:
      let drawn = server()
      let index = stoppedServer ?? drawn
      return change(index, engine.servers[index].isPaused ? engine.resume : engine.restart)
    case .pauseLeader:
      guard let leader = engine.leader(of: stream()) else { return false }
      return change(leader, engine.pause)
    case .stepDown:
      let stream = stream()
      guard engine.leader(of: stream) != nil else { return false }
      engine.stepDown(stream)
    case .isolate: return change(server(), engine.isolate)
    default:
      let jump = cluster.pick([3_600, -3_600, 86_400, 90, -5])
      if world.random.oneIn(2) {
        world.wallClock += Int64(jump) * 1_000
      } else {
        engine.clockOffset += .seconds(jump)
      }
    }
    return true
  }

  /// A node that was killed.
  private var stopped: WholeNode? { cluster.nodes.first { !$0.isRunning } }

  /// A server of the engine that was killed or paused.
  private var stoppedServer: Int? { engine.servers.firstIndex { !$0.isRunning || $0.isPaused } }

  private func change(_ index: Int, _ body: (Int) -> Void) -> Bool {
    let before = (engine.servers[index].isAvailable, engine.servers[index].isRunning)
    body(index)
    return before != (engine.servers[index].isAvailable, engine.servers[index].isRunning)
  }

  private func stream() -> String {
    let number = world.random.next(in: -1...(cluster.shards - 1))
    return number < 0 ? ControlRecord.stream : EngineNames(shard: ShardID(rawValue: UInt32(number))).stream
  }

  private func heal(_ name: String) {
    cluster.healEngine(for: name)
    for other in names where other != name { cluster.heal(name, other) }
  }

  /// Ends all faults.
  func end() throws {
    engine.heal()
    for name in names {
      heal(name)
      if cluster.node(name)?.isRunning != true { try cluster.start(name) }
      for loop in cluster.node(name)?.loops ?? [] { loop.resume() }
    }
  }
}
