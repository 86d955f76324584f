import SluiceIO
import SluiceNATS
import SluiceSimulation
import SluiceStore
import SluiceTopics

@testable import SluiceBroker
@testable import SluiceCluster

/// A process of the cluster: a broker with one loop for its clients, and one for the engine. Unchecked: a world is used by one thread.
final class WholeNode: @unchecked Sendable {
  let name: String
  let loops: [SimulatedLoop]
  let broker: Broker
  let member: ClusterMember
  private(set) var events: [ClusterEvent] = []
  private(set) var isRunning = true
  private(set) var isPaused = false
  private let network: SimulatedNetwork

  init(_ options: ClusterOptions, _ engineOptions: JetStreamEngineOptions, in world: SimulatedWorld) throws {
    name = options.name
    network = world.network
    loops = [world.makeLoop(name: options.name), world.makeLoop(name: "\(options.name)'s engine")]
    let events = EventSink()
    member = try ClusterMember(
      options, engineOptions: engineOptions, network: world.network, on: loops[1],
      writer: world.random.next(below: 1 << 60) + 1,
      storeReport: { events.node?.stored($0, $1, in: events.world) },
      report: { events.node?.happened($0, in: events.world) })
    var configuration = BrokerConfiguration()
    configuration.listen = [Self.address(of: options.name)]
    configuration.identity = world.random.next()
    broker = try Broker(
      configuration, network: world.network, group: LoopGroup([loops[0]]), routes: member.routes)
    events.node = self
    events.world = world
    try broker.start()
    member.start(broker)
  }

  static func address(of name: String) -> SocketAddress { .host(name, port: 7420) }

  fileprivate func stored(_ shard: ShardID, _ event: StoreEvent, in world: SimulatedWorld?) {
    world?.trace?("\(world?.now.nanoseconds ?? 0) \(name): shard \(shard): \(event)")
  }

  fileprivate func happened(_ event: ClusterEvent, in world: SimulatedWorld?) {
    world?.trace?("\(world?.now.nanoseconds ?? 0) \(name): \(event)")
    events.append(event)
  }

  /// Kills the process.
  func kill() {
    guard isRunning else { return }
    isRunning = false
    for loop in loops { network.crash(loop) }
  }

  /// Pauses the process until ``goOn()``; its sockets stay open.
  func pause() {
    isPaused = true
    for loop in loops { loop.stall() }
  }

  func goOn() {
    isPaused = false
    for loop in loops { loop.resume() }
  }

  /// Hands over all shards, then stops.
  func stop() {
    member.leave { [self] in
      member.close()
      broker.shutdown()
    }
    broker.whenStopped { [self] in isRunning = false }
  }
}

/// The target of a member's events, set once the node exists.
private final class EventSink: @unchecked Sendable {
  weak var node: WholeNode?
  weak var world: SimulatedWorld?
}
