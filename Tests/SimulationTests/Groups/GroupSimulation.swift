import ReactiveCore
import SluiceLog
import SluiceSimulation
import SluiceStore
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics
@testable import SluiceClient
@testable import SluiceIO

/// A consumer group: a broker, the group's workers, a producer, and faults, all on the calling thread.
final class GroupSimulation {
  private let plan: GroupPlan
  private let world: SimulatedWorld
  private let oracle: GroupOracle
  private var broker: Broker
  private var brokerLoops: [SimulatedLoop]
  /// The disk of durable topics.
  private let disk: DurableDisk
  private var storage: OpenedDisk
  private var storageLoop: SimulatedLoop
  private let address = SocketAddress.host("broker", port: 7420)
  private var workers: [GroupWorker] = []
  private var producer: Client!
  private var random: SeededRandom

  init(_ plan: GroupPlan) throws {
    self.plan = plan
    world = SimulatedWorld(seed: plan.seed, loops: 0)
    let world = world
    brokerLoops = (0..<plan.brokerLoops).map { world.makeLoop(name: "broker \($0)") }
    oracle = GroupOracle(plan)
    random = SeededRandom(seed: plan.seed &* 0x2545_f491)
    disk = DurableDisk(seed: plan.seed)
    storage = disk.open()
    storageLoop = world.makeLoop(name: "storage")
    broker = try Self.makeBroker(
      plan, world, brokerLoops, address, identity: world.random.next(), storage, storageLoop)
    producer = try makeProducer()
  }

  private static func makeBroker(
    _ plan: GroupPlan, _ world: SimulatedWorld, _ loops: [SimulatedLoop], _ address: SocketAddress,
    identity: UInt64, _ storage: OpenedDisk, _ storageLoop: SimulatedLoop
  ) throws -> Broker {
    var configuration = BrokerConfiguration()
    configuration.listen = [address]
    configuration.identity = identity
    configuration.limits.keepalive = 1_000
    configuration.limits.groupRecords = 64
    if plan.isLossless { configuration.topicDefaults.flow = .lossless }
    if plan.isDurable {
      configuration.topicDefaults.storage = .durable
      configuration.topicDefaults.sync = .always
    }
    let broker = try Broker(
      configuration, network: world.network, group: LoopGroup(loops), storage: StoreConfiguration(storage),
      storageGroup: LoopGroup([storageLoop]))
    try broker.start()
    return broker
  }

  private func makeProducer() throws -> Client {
    var options = ClientOptions()
    options.name = "producer"
    options.keepalive = .milliseconds(500)
    var policy = ReconnectPolicy()
    policy.maximumDelay = .milliseconds(200)
    options.reconnect = policy
    options.seed = random.next()
    let box = Shared<Client?>(nil)
    Client.connect(
      to: address, options: options, network: world.network, loop: world.makeLoop(name: "producer")
    ) {
      box.set(try? $0.get())
    }
    _ = world.run { box.value != nil }
    guard let client = box.value else { throw WireError(.unsupported, "the producer can't connect") }
    return client
  }

  /// Runs the scenario. Returns the failures, and the number of delivered records.
  func run() throws -> (failures: [String], received: Int) {
    for _ in 0..<plan.workers { hire() }
    let subject = producer.subject(GroupPlan.topic)
    var published = 0
    let crashAt = plan.crashes ? random.next(in: 1...plan.records) : 0
    if plan.breaksOff {
      world.faults.resetEvery = .milliseconds(700)
      world.faults.cutEvery = .seconds(2)
    }
    while published < plan.records {
      let count = min(random.next(in: 1...6), plan.records - published)
      for _ in 0..<count {
        let key = random.oneIn(4) ? nil : "\(random.next(in: 0...4))"
        subject.send(Message("job \(published)", key: key))
        published += 1
        if published == crashAt { try crash() }
      }
      world.run(for: random.next(in: .zero ... .milliseconds(60)))
      disturb()
    }
    world.run(for: .seconds(1))
    try settle(subject)
    // Wait until the last dead letters are on disk.
    if plan.isDurable { world.run(for: .seconds(1)) }
    if oracle.failures.isEmpty { audit() }
    end()
    return (oracle.failures, oracle.received)
  }

  private func hire() {
    let number = workers.count + 1
    let worker = GroupWorker(number, plan, oracle, loop: world.makeLoop(name: "worker \(number)"))
    workers.append(worker)
    worker.loop.perform { worker.connect(to: address, world.network) }
  }

  private func disturb() {
    if plan.kills, random.oneIn(10), let victim = workers.last(where: { !$0.isGone }) {
      world.network.crash(victim.loop)
      victim.kill()
      hire()
    }
    if plan.trims, random.oneIn(10), let epoch = topic?.epoch {
      let offset = random.next(below: epoch.log.head + 1)
      oracle.trims(to: offset)
      producer.trimTopic(GroupPlan.topic, before: offset) { _ in }
    }
    if plan.leaves, random.oneIn(10), let worker = workers.first(where: { !$0.isGone }) {
      worker.loop.perform { worker.leaveAndReturn() }
    }
  }

  private func crash() throws {
    storage.die()
    for loop in brokerLoops + [storageLoop] { world.network.crash(loop) }
    world.run(for: .milliseconds(100))
    oracle.crashed()
    let world = world
    brokerLoops = brokerLoops.map { world.makeLoop(name: $0.name + "'") }
    storage = disk.open()
    storageLoop = world.makeLoop(name: "storage'")
    broker = try Self.makeBroker(
      plan, world, brokerLoops, address, identity: world.random.next(), storage, storageLoop)
  }

  // MARK: The end

  private func settle(_ subject: TopicSubject) throws {
    world.faults = SimulatedFaults()
    world.network.heal(address)
    for connection in world.network.connections { connection.heal() }
    for loop in world.loops { loop.resume() }
    hire()
    for worker in workers where !worker.isGone { worker.settle() }
    let isFlushed = Shared(false)
    subject.complete(.finished) { result in
      if case .success = result { isFlushed.set(true) }
    }
    guard world.run(limit: .seconds(120), until: { isFlushed.value }) else {
      return oracle.fail("the producer never gets rid of its records")
    }
    let isOver = world.run(limit: .seconds(300)) {
      workers.allSatisfy { $0.isGone || $0.completion != nil }
    }
    guard isOver else {
      let info = topic?.groupInfos(now: world.now).first
      return oracle.fail("the group never comes to its end: \(info.map { "\($0)" } ?? "there is none")")
    }
    for worker in workers where !worker.isGone {
      if case .finished = worker.completion { continue }
      oracle.fail("worker \(worker.number) ended with \(worker.completion.map { "\($0)" } ?? "nothing")")
    }
  }

  private var topic: Topic? { broker.core.registry.find(GroupPlan.topic) }

  private func audit() {
    guard let topic else { return oracle.fail("there is no topic") }
    let epoch = topic.epoch
    let letters = broker.core.registry.find(GroupPlan.deadLetters).map { records(of: $0) } ?? []
    let dead = letters.compactMap { letter in
      letter.headers["sluice-dead-offset"].flatMap { UInt64($0) }
    }
    oracle.check(dead.count == letters.count, "a dead letter doesn't say where it is from")
    // Some trimmed records are still stored.
    let first = epoch.storage == nil ? epoch.log.oldestOffset : epoch.storage?.firstOffset ?? 0
    let keys = [String?](repeating: nil, count: Int(first)) + records(of: topic).map(\.key)
    oracle.audit(epoch: epoch.number, keys: keys, dead: dead)
    guard let info = topic.groupInfos(now: world.now).first else { return oracle.fail("the group is gone") }
    oracle.check(
      info.outstanding == 0 && info.nextOffset == epoch.log.head && info.members == 0,
      "the group has come to its end with \(info)")
  }

  private func records(of topic: Topic) -> [(key: String?, headers: [String: String])] {
    var records: [(key: String?, headers: [String: String])] = []
    if let storage = topic.storage {
      let read: Void? = try? disk.store.batches(of: storage.id, from: 0) { offset, bytes in
        guard let batch = BatchView(bytes, of: storage.id, at: offset) else { return false }
        records += Self.records(in: batch.items)
        return true
      }
      oracle.check(read != nil, "\(topic.name) can't be read")
    } else {
      let log = topic.epoch.log
      var cursor = log.cursor(at: .earliest, from: 0).cursor
      while case .slice(let slice) = log.next(&cursor, bytes: 1 << 20) {
        records += Self.records(in: slice.bytes)
      }
    }
    return records
  }

  private static func records(in items: UnsafeRawBufferPointer) -> [(
    key: String?, headers: [String: String]
  )] {
    var records: [(key: String?, headers: [String: String])] = []
    var iterator = BatchIterator(items, time: 0)
    while let record = try? iterator.next() {
      let attributes = record.isAttributed ? try? RecordAttributes(record.body) : nil
      var headers: [String: String] = [:]
      attributes?.forEachHeader { name, value in
        headers[String(decoding: name, as: UTF8.self)] = String(decoding: value, as: UTF8.self)
      }
      records.append((attributes?.key.map { String(decoding: $0, as: UTF8.self) }, headers))
    }
    return records
  }

  private func end() {
    for worker in workers { worker.loop.perform { worker.close() } }
    producer.close()
    producer = nil
    world.run(for: .seconds(5))
    guard oracle.failures.isEmpty else { return }
    let registry = broker.core.registry
    for topic in registry.all {
      oracle.check(topic.loopStates.isEmpty, "\(topic.name) has loopStates though all clients have left")
    }
    for name in registry.all.map(\.name).sorted() { _ = try? registry.delete(name) }
    oracle.check(
      registry.pool.bytesInUse == 0,
      "\(registry.pool.bytesInUse) bytes of segments are in use without a topic")
    broker.stop()
    world.run(for: .seconds(1))
  }
}
