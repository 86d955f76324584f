import SluiceIO
import SluiceSimulation
import Synchronization

@testable import SluiceBroker
@testable import SluiceTopics

/// One broker after another on the same simulated disk and address.
final class DurableHost {
  static let address = SocketAddress.host("broker", port: 7420)

  let disk: DurableDisk
  private let world: SimulatedWorld
  private let loopCounts: (broker: Int, storage: Int)
  private let configure: (inout BrokerConfiguration) -> Void
  private(set) var broker: Broker!
  private(set) var storageLoops: [SimulatedLoop] = []
  /// Whether the broker's process was killed.
  private(set) var isDead = false
  private var opened: OpenedDisk!
  private var loops: [SimulatedLoop] = []

  init(
    _ world: SimulatedWorld, _ disk: DurableDisk, brokerLoops: Int, storageLoops: Int = 3,
    _ configure: @escaping (inout BrokerConfiguration) -> Void = { $0.limits.keepalive = 1_000 }
  ) {
    self.world = world
    self.disk = disk
    loopCounts = (brokerLoops, storageLoops)
    self.configure = configure
  }

  func start() throws {
    var configuration = BrokerConfiguration()
    configuration.listen = [Self.address]
    configuration.identity = world.random.next()
    configuration.drainTime = .seconds(1)
    configure(&configuration)
    loops = (0..<loopCounts.broker).map { world.makeLoop(name: "broker \($0)") }
    storageLoops = (0..<loopCounts.storage).map { world.makeLoop(name: "storage \($0)") }
    opened = disk.open()
    isDead = false
    broker = try Broker(
      configuration, network: world.network, group: LoopGroup(loops), storage: StoreConfiguration(opened),
      storageGroup: LoopGroup(storageLoops))
    try broker.start()
  }

  /// Kills the broker's process.
  func kill() {
    isDead = true
    opened.die()
    for loop in loops + storageLoops { world.network.crash(loop) }
  }

  /// Shuts the broker down. Returns whether it stopped.
  func stop() -> Bool {
    let isStopped = Shared(false)
    broker.whenStopped { isStopped.set(true) }
    broker.shutdown()
    let isOver = world.run(limit: .seconds(20)) { isStopped.value }
    for loop in loops + storageLoops { world.network.crash(loop) }
    return isOver
  }
}
