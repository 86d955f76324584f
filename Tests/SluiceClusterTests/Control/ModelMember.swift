import SluiceIO
import SluiceNATS
import SluiceSimulation

@testable import SluiceCluster

/// A process with a node and a minimal broker, which only opens and closes shards. Unchecked: a world is used by one thread.
final class ModelMember: @unchecked Sendable {
  let name: String
  let loop: SimulatedLoop
  let node: ClusterNode
  private(set) var isRunning = true
  private(set) var events: [ClusterEvent] = []
  private let world: SimulatedWorld
  private let noticed: (ModelMember, ClusterEvent) -> Void

  init(
    _ options: ClusterOptions, in world: SimulatedWorld, flaw: ClusterFlaw = .none,
    _ noticed: @escaping (ModelMember, ClusterEvent) -> Void
  ) throws {
    name = options.name
    self.world = world
    self.noticed = noticed
    loop = world.makeLoop(name: options.name)
    node = try ClusterNode(
      options, network: world.network, on: loop, writer: world.random.next(below: 1 << 60) + 1)
    node.control.flaw = flaw
    loop.perform { node.start { [unowned self] in happened($0) } }
  }

  /// The shards that it is closing.
  private(set) var closing: Set<Int> = []

  private func happened(_ event: ClusterEvent) {
    events.append(event)
    switch event {
    case .gained(let shard, let term):
      after(.milliseconds(1)...(.milliseconds(30))) { [node] in node.opened(shard, term: term) }
    case .closing(let shard, let term, _):
      closing.insert(shard)
      after(.milliseconds(1)...(.milliseconds(50))) { [unowned self] in
        closing.remove(shard)
        node.closed(shard, term: term)
      }
    case .lost(let shard, _): closing.remove(shard)
    default: break
    }
    noticed(self, event)
  }

  private func after(_ delay: ClosedRange<Duration>, _ body: @escaping () -> Void) {
    _ = loop.schedule(after: world.random.next(in: delay), body)
  }

  func perform(_ body: (ClusterNode) -> Void) { loop.perform { body(node) } }

  /// Kills the process.
  func crash() {
    guard isRunning else { return }
    isRunning = false
    world.network.crash(loop)
  }

  /// The terms of the shards that it believes to own, by its own clock.
  func beliefs(at now: MonotonicTime) -> [Int: UInt64] {
    guard isRunning else { return [:] }
    var result: [Int: UInt64] = [:]
    for shard in node.control.leases.keys { result[shard] = node.control.believes(in: shard, at: now) }
    return result
  }
}
