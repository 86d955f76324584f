import SluiceIO
import SluiceSimulation
import SluiceStore
import SluiceWire
import Synchronization

@testable import SluiceBroker
@testable import SluiceTopics

/// Durable topics, their producers and readers, and one broker after another on the same disk, all on the calling thread.
final class DurableSimulation {
  struct Outcome {
    var failures: [String]
    var lines: [String]
    var delivered: Int
    var commits: Int
    var failedCommits: Int
  }

  private let plan: DurablePlan
  private let world: SimulatedWorld
  private let oracle: DurableOracle
  private let disk: DurableDisk
  private let host: DurableHost
  private let clients: SimulatedLoop
  private var peers: [DurablePeer] = []
  private let admin: DurableAdmin
  private var producers: [DurableProducer] = []
  private var readers: [DurableReader] = []
  private var random: SeededRandom

  /// How long after the last fault all deliveries may take.
  private static let patience = Duration.seconds(120)

  init(_ plan: DurablePlan, keepsLines: Bool = false, flaw: DurableDisk.Flaw? = nil) throws {
    self.plan = plan
    let world = SimulatedWorld(seed: plan.seed, loops: 0)
    self.world = world
    oracle = DurableOracle(keepsLines: keepsLines)
    oracle.clock = { [unowned world] in world.now }
    oracle.wallClock = { [unowned world] in world.wallClock }
    disk = DurableDisk(seed: plan.seed)
    disk.flaw = flaw
    disk.whenCommitted = { [oracle] in oracle.committed($0) }
    host = DurableHost(world, disk, brokerLoops: plan.brokerLoops)
    random = SeededRandom(seed: plan.seed &* 0x1b87_3593)
    clients = world.makeLoop(name: "clients")
    let peer = DurablePeer(
      0, seed: plan.seed, loop: clients, network: world.network, address: DurableHost.address, oracle: oracle)
    admin = DurableAdmin(plan, peer: peer)
    peer.user = admin
    peers.append(peer)
    try host.start()
  }

  // MARK: The broker

  /// Kills the broker's process.
  private func kill() {
    oracle.note("the broker is killed")
    host.kill()
  }

  private func restart(inOrder: Bool) throws {
    try host.start()
    oracle.note("another broker takes its place")
    oracle.restarted(host.broker, inOrder: inOrder, isHealthy: disk.health == .good)
  }

  private func stop() {
    oracle.note("the broker is asked to stop")
    oracle.check(host.stop(), "the broker doesn't stop")
  }

  // MARK: The scenario

  func run() throws -> Outcome {
    clients.perform { peers[0].connect() }
    let isReady = world.run(limit: .seconds(10)) { admin.isReady }
    oracle.check(isReady, "the topics can't be made")
    if oracle.failures.isEmpty {
      cast()
      for blow in plan.blows where oracle.failures.isEmpty {
        play(for: blow.after)
        try strike(blow.kind)
      }
      if oracle.failures.isEmpty { play(for: random.next(in: .zero ... .milliseconds(500))) }
      if oracle.failures.isEmpty { try settle() }
    }
    for peer in peers { peer.loop.perform { peer.leave() } }
    host.broker.stop()
    world.run(for: .seconds(2))
    return Outcome(
      failures: oracle.failures, lines: oracle.lines, delivered: oracle.delivered, commits: oracle.commits,
      failedCommits: disk.failedCommits)
  }

  private func cast() {
    if plan.breaksOff { world.faults.resetEvery = .milliseconds(600) }
    for producer in plan.producers {
      let peer = makePeer()
      let user = DurableProducer(producer, topic: plan.topics[producer.topic].name, peer: peer)
      producers.append(user)
      peer.user = user
    }
    for reader in plan.readers { read(reader) }
  }

  private func makePeer() -> DurablePeer {
    let peer = DurablePeer(
      peers.count, seed: plan.seed, loop: clients, network: world.network, address: DurableHost.address,
      oracle: oracle)
    peers.append(peer)
    let delay = random.next(in: .zero ... .milliseconds(100))
    clients.perform { _ = clients.schedule(after: delay) { peer.connect() } }
    return peer
  }

  @discardableResult
  private func read(_ reader: DurablePlan.Reader) -> DurableReader {
    let peer = makePeer()
    let user = DurableReader(
      reader, topic: plan.topics[reader.topic].name, number: readers.count, peer: peer)
    readers.append(user)
    peer.user = user
    return user
  }

  private func play(for length: Duration) {
    let end = world.now + length
    while world.now < end, oracle.failures.isEmpty {
      world.run(until: min(end, world.now + .milliseconds(20)))
      if plan.hasBadDisk, random.oneIn(8) {
        let states: [DurableDisk.Health] = [.good, .good, .full, .failing]
        disk.health = states[random.next(in: 0...3)]
        disk.isFlaky = random.oneIn(2)
        oracle.note("the disk is \(disk.health)")
      }
      if plan.hasSlowDisk, random.oneIn(6) {
        host.storageLoops[random.next(in: 0...2)].stall(
          for: random.next(in: .milliseconds(1) ... .milliseconds(300)))
      }
    }
  }

  private func strike(_ kind: DurablePlan.Blow) throws {
    guard oracle.failures.isEmpty else { return }
    switch kind {
    case .crash: kill()
    case .crashInCommit(let isOnDisk):
      disk.crashInCommit = (isOnDisk, { [unowned self] in kill() })
      _ = world.run(limit: .milliseconds(500)) { [host] in host.isDead }
      disk.crashInCommit = nil
      if !host.isDead { kill() }
    case .stop:
      // Stopping a broker whose disk fails loses the waiting records.
      disk.health = .good
      stop()
      oracle.check(disk.wasClosed, "the broker stopped, and has left the store open")
      return try restart(inOrder: true)
    }
    world.run(for: random.next(in: .milliseconds(1) ... .milliseconds(300)))
    try restart(inOrder: false)
  }

  // MARK: The end

  private func settle() throws {
    oracle.note("all is well from here on")
    world.faults = SimulatedFaults()
    disk.health = .good
    for loop in host.storageLoops { loop.resume() }
    clients.perform {
      admin.settle()
      for producer in producers { producer.settle() }
      for reader in readers { reader.settle() }
    }
    guard finish() else { return }
    // Writes that may wait for the disk.
    world.run(for: .seconds(3))
    guard finish() else { return }
    for truth in oracle.topics.values { truth.auditCursors() }
    stop()
    for reader in readers { reader.audit() }
    guard oracle.failures.isEmpty else { return }
    try restart(inOrder: true)
    // Late readers find all records on disk and none in memory.
    for topic in plan.topics.indices {
      let late = read(DurablePlan.Reader(topic: topic))
      clients.perform { late.settle() }
    }
    guard finish() else { return }
    for reader in readers { reader.audit() }
  }

  private func finish() -> Bool {
    var missing: String?
    let isOver = world.run(limit: Self.patience) {
      missing = unsettled
      return missing == nil || !oracle.failures.isEmpty
    }
    oracle.check(isOver, "never came to an end: \(missing ?? "")")
    return oracle.failures.isEmpty
  }

  private var unsettled: String? {
    for producer in producers { if let what = producer.unsettled { return what } }
    for reader in readers { if let what = reader.unsettled { return what } }
    return admin.unsettled
  }
}
