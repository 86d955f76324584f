import SluiceBroker
import SluiceIO
import SluiceSimulation
import SluiceStore
import SluiceWire

/// A broker with its producer and subscribers in a simulated world, without sockets and threads.
///
/// The figures include the instructions of the simulated network and of the peers, which change only when their code does.
enum BrokerLoads {
  static var all: [FixedLoad] {
    [
      load(subscribers: 1, batch: 512, batches: 200),
      load(subscribers: 1, batch: 8, batches: 2_000),
      load(subscribers: 100, batch: 64, batches: 100),
      load(subscribers: 1, batch: 64, batches: 500, demand: 256),
      load(subscribers: 1, batch: 64, batches: 500, storage: .durable),
    ]
  }

  private static func load(
    subscribers: Int, batch: Int, batches: Int, demand: UInt64? = nil,
    storage: TopicSettings.Storage = .memory
  ) -> FixedLoad {
    var name = "broker: 1 to \(subscribers), batches of \(batch)"
    if let demand { name += ", demand \(demand)" }
    if storage == .durable { name += ", durable" }
    return FixedLoad(name: name, unit: "record", units: subscribers * batch * batches) {
      let scene = try FixedScene(
        subscribers: subscribers, batch: FixedBatch(size: 128, count: batch), demand: demand, storage: storage
      )
      try scene.deliver(batches / 4)
      return { try scene.deliver(batches) }
    }
  }
}

/// A broker, a producer and subscribers.
private final class FixedScene {
  private let world: SimulatedWorld
  private let loop: SimulatedLoop
  private let broker: Broker
  private let batch: FixedBatch
  private let producer: SimulatedProducer
  private let subscribers: [SimulatedSubscriber]
  private var delivered: UInt64 = 0

  init(subscribers count: Int, batch: FixedBatch, demand: UInt64?, storage: TopicSettings.Storage) throws {
    self.batch = batch
    world = SimulatedWorld.fixed()
    loop = world.makeLoop(name: "peers")
    var settings = TopicSettings(replayRecords: 0)
    settings.flow = .lossless
    settings.storage = storage
    broker = try Broker.fixed(in: world, rules: settings)
    producer = SimulatedProducer(topic: "t", batch: batch)
    subscribers = (0..<count).map { _ in SimulatedSubscriber(topic: "t", demand: demand) }
    for subscriber in subscribers { subscriber.connect(world, on: loop, to: Broker.fixedAddress) }
    try wait { subscribers.allSatisfy(\.isOpen) }
    producer.connect(world, on: loop, to: Broker.fixedAddress)
    try wait { producer.isOpen }
  }

  func deliver(_ batches: Int) throws {
    delivered += UInt64(batches * batch.count)
    loop.perform { producer.publish(batches) }
    try wait { subscribers.allSatisfy { $0.received == delivered } }
  }

  private func wait(_ condition: () -> Bool) throws {
    let peers = [producer] + subscribers as [SimulatedPeer]
    while !condition() {
      if let error = peers.lazy.compactMap(\.error).first { throw error }
      world.run(for: .milliseconds(1))
    }
  }
}

extension SimulatedWorld {
  /// A world without randomness, whose connections have as much buffer space as sockets.
  static func fixed() -> SimulatedWorld {
    var conditions = SimulatedConditions.calm
    conditions.bufferSize = 1 << 20
    return SimulatedWorld(seed: 1, loops: 0, conditions: conditions)
  }
}

extension Broker {
  static let fixedAddress = SocketAddress.host("broker", port: 7420)

  /// A broker in a simulated world, whose topics have these settings.
  static func fixed(in world: SimulatedWorld, rules settings: TopicSettings) throws -> Broker {
    var configuration = BrokerConfiguration()
    configuration.listen = [fixedAddress]
    configuration.identity = 1
    configuration.topicRules = [TopicRule(pattern: try TopicPattern("*"), settings: settings)]
    let broker = try Broker(
      configuration, network: world.network, group: LoopGroup([world.makeLoop(name: "broker")]),
      storage: settings.storage == .durable ? StoreConfiguration(MemoryStore()) : nil,
      storageGroup: settings.storage == .durable ? LoopGroup([world.makeLoop(), world.makeLoop()]) : nil)
    try broker.start()
    return broker
  }
}
