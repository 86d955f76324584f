import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

@testable import SluiceBroker
@testable import SluiceTopics
@testable import SluiceSimulation

/// The result of a run.
struct Outcome {
  var seed: UInt64
  var failures: [String]
  /// Differs if any action or observation of a peer differs.
  var hash: UInt64
  var lines: [String]
  /// The number of records that subscribers received.
  var delivered: UInt64
}

/// Plays a scenario: a broker, its peers, the network between them and the faults, all on the calling thread.
final class Simulation {
  let scenario: Scenario
  /// The broker's planted fault.
  let flaw: BrokerFlaw?
  let world: SimulatedWorld
  private var broker: Broker
  let oracle: Oracle
  let inspector: BrokerInspector
  let address: SocketAddress
  private(set) var peers: [any Participant] = []
  private var attackers: [Attacker] = []
  private(set) var isLeaving = false

  /// The buffer into which peers read, one after another.
  let readBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
  private var inquirer: Inquirer?
  private var brokerLoops: [SimulatedLoop]
  private let peerLoops: [SimulatedLoop]
  private var isStopped = Flag()
  private var agenda: [(time: MonotonicTime, action: () -> Void)] = []
  private var isDown = false
  private var cuts: [SimulatedConnection] = []

  /// How long a peer's last frames may travel to a broker that is about to close.
  let farewellTime = Duration.milliseconds(200)
  private static let tick = Duration.milliseconds(10)
  /// How long after the last fault all deliveries may take.
  private static let patience = Duration.seconds(120)

  private final class Flag: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .relaxed) }
    func set() { value.store(true, ordering: .relaxed) }
  }

  /// - Parameters:
  ///   - keepsLines: whether to record the events as lines.
  ///   - flaw: the broker's planted fault.
  init(_ scenario: Scenario, keepsLines: Bool = false, flaw: BrokerFlaw? = nil) throws {
    let scenario = flaw?.planted(in: scenario) ?? scenario
    self.scenario = scenario
    self.flaw = flaw
    let world = SimulatedWorld(seed: scenario.seed, conditions: scenario.conditions)
    self.world = world
    brokerLoops = [world.loops[0]] + (1..<scenario.brokerLoops).map { world.makeLoop(name: "broker \($0)") }
    peerLoops = (0..<scenario.peerLoops).map { world.makeLoop(name: "peers \($0)") }
    broker = try Broker(scenario.configuration, network: world.network, group: LoopGroup(brokerLoops))
    let chronicle = Chronicle(keepsLines: keepsLines) { [unowned world] in world.now }
    oracle = Oracle(broker: broker, chronicle: chronicle) { [unowned world] in world.wallClock }
    if keepsLines, Seeds.isDetailed { world.trace = { chronicle.add($0) } }
    inspector = BrokerInspector(oracle)
    address = try broker.start()[0]
    broker.whenStopped { [isStopped] in isStopped.set() }
    for topic in scenario.topics {
      if let settings = topic.settings { _ = try broker.core.registry.create(topic.name, settings) }
    }
    if scenario.isKeyed {
      oracle.replaceableTopics = Set(scenario.topics.filter { $0.stated != nil }.map(\.name))
    }
    oracle.isDisturbed = { [unowned self] number in
      peers.first { $0.number == number }.map { $0.isDisturbed || !$0.isConnected } ?? true
    }
  }

  deinit {
    readBuffer.deallocate()
  }

  func run() -> Outcome {
    cast()
    for disturbance in scenario.disturbances {
      plan(at: disturbance.time) { [unowned self] in happen(disturbance.kind) }
    }
    let start = world.now
    switch scenario.ending {
    case .settled:
      play(until: start + scenario.length)
      settle()
      leave()
    case .shutdown(let time):
      play(until: start + time)
      shutDown()
    case .stop(let time):
      play(until: start + time)
      restart()
      oracle.brokerIsStopping = true
      oracle.brokerRanOutOfTime = true
      oracle.chronicle.note(0, "the broker stops at once")
      broker.stop()
      awaitEnd()
    }
    end()
    return Outcome(
      seed: scenario.seed, failures: oracle.failures, hash: oracle.chronicle.hash,
      lines: oracle.chronicle.lines,
      delivered: oracle.subscriptions.reduce(0) { $0 + $1.delivered })
  }

  // MARK: The parts

  /// Creates all participants.
  private func cast() {
    for (index, plan) in scenario.peers.enumerated() {
      let peer = plan.usesLibrary ? makeLibraryPeer(index + 1, plan) : makePeer(index + 1, plan)
      peers.append(peer)
      self.plan(at: plan.connectsAfter) { peer.loop.perform { peer.connect() } }
    }
    var plan = PeerPlan()
    plan.maximumFrame = 2 << 20
    plan.keepalive = 4_000
    let asker = SimulatedPeer(number: peers.count + 1, plan: plan, loop: peerLoops[0], simulation: self)
    let inquirer = Inquirer(peer: asker)
    asker.add(inquirer)
    peers.append(asker)
    self.inquirer = inquirer
    self.plan(at: .zero) { asker.loop.perform { asker.connect() } }
  }

  private func makePeer(_ number: Int, _ plan: PeerPlan) -> any Participant {
    let peer = SimulatedPeer(
      number: number, plan: plan, loop: peerLoops[plan.loop % peerLoops.count], simulation: self)
    for producer in plan.producers { peer.add(FrameProducer(producer, peer: peer)) }
    for subscriber in plan.subscribers { peer.add(FrameSubscriber(subscriber, peer: peer)) }
    return peer
  }

  private func makeLibraryPeer(_ number: Int, _ plan: PeerPlan) -> any Participant {
    LibraryPeer(number: number, plan: plan, loop: world.makeLoop(name: "peer \(number)"), simulation: self)
  }

  private func plan(at delay: Duration, _ action: @escaping () -> Void) {
    let time = world.now + delay
    let index = agenda.firstIndex { $0.time > time } ?? agenda.count
    agenda.insert((time, action), at: index)
  }

  private func play(until end: MonotonicTime) {
    while true {
      let next = min(end, world.now + Self.tick, agenda.first?.time ?? end)
      world.run(until: next)
      for peer in peers { peer.meddle() }
      inspector.look()
      inspector.checkBounds()
      oracle.checkConnections(scenario.topics)
      while let first = agenda.first, first.time <= world.now {
        agenda.removeFirst()
        first.action()
      }
      if world.now >= end || !oracle.failures.isEmpty { return }
    }
  }

  /// A peer has received WELCOME.
  func opened() {
    inspector.look()
  }

  func connection(of stream: any ByteStream) -> SimulatedConnection? {
    world.network.connections.first { $0.client === stream }
  }

  /// The newest connection from a loop.
  func latestConnection(from loop: SimulatedLoop) -> SimulatedConnection? {
    world.network.connections.last { $0.clientSide.loop === loop }
  }

  // MARK: What goes wrong

  private func happen(_ kind: Disturbance.Kind) {
    oracle.chronicle.note(0, "\(kind)")
    switch kind {
    case .hangUp(let number, let manner): peers[number].loop.perform { peers[number].hangUp(manner) }
    case .cut(let number, let length):
      guard let connection = peers[number].connection else { return }
      peers[number].isDisturbed = true
      connection.cut()
      cuts.append(connection)
      plan(at: length) { connection.heal() }
    case .reset(let number):
      peers[number].isDisturbed = true
      peers[number].connection?.reset()
    case .partition(let length):
      for peer in peers { peer.isDisturbed = true }
      for attacker in attackers { attacker.isDisturbed = true }
      world.network.cut(address)
      plan(at: length) { [unowned self] in world.network.heal(address) }
    case .stall(let number, let length):
      (brokerLoops + peerLoops)[number].stall(for: length)
      if length > .milliseconds(90) { oracle.excusesTimeouts = true }
    case .crash(let length):
      crash()
      plan(at: length) { [unowned self] in restart() }
    case .kill(let number):
      guard let peer = peers[number] as? LibraryPeer else { return }
      world.network.crash(peer.loop)
      peer.kill()
    case .delete(let topic): ask { $0.delete(topic) }
    case .show(let topic): ask { $0.show(topic) }
    case .list: ask { $0.list() }
    case .trim(let topic, let count): ask { $0.trim(topic, to: count) }
    case .set(let topic, let settings): ask { $0.set(topic, settings) }
    case .create(let topic): ask { $0.create(topic, TopicSettings(replayRecords: 5)) }
    case .attack(let attack):
      let loop = peerLoops[attackers.count % peerLoops.count]
      let attacker = Attacker(
        attack, number: 101 + attackers.count, topic: scenario.topics[0].name, loop: loop, simulation: self)
      attackers.append(attacker)
      loop.perform { attacker.connect() }
    }
  }

  /// Kills the broker's process; the contents of its memory are lost.
  private func crash() {
    for peer in peers { peer.isDisturbed = true }
    for attacker in attackers { attacker.isDisturbed = true }
    for loop in brokerLoops { world.network.crash(loop) }
    isDown = true
  }

  private func restart() {
    guard isDown else { return }
    isDown = false
    oracle.chronicle.note(0, "another broker takes its place")
    var configuration = scenario.configuration
    configuration.identity = world.random.next()
    brokerLoops = brokerLoops.map { world.makeLoop(name: $0.name + "'") }
    do {
      broker = try Broker(configuration, network: world.network, group: LoopGroup(brokerLoops))
      try broker.start()
    } catch {
      oracle.fail(0, "the broker can't be started again: \(error)")
    }
    isStopped = Flag()
    broker.whenStopped { [isStopped] in isStopped.set() }
    oracle.restarted(broker)
    inspector.restarted()
  }

  private func ask(_ question: (Inquirer) -> Void) {
    if let inquirer { inquirer.loop.perform { question(inquirer) } }
  }

  // MARK: Endings

  /// Ends all faults, and checks that participants then get all their records.
  private func settle() {
    oracle.chronicle.note(0, "all is well from here on")
    endTroubles()
    world.conditions.refusedOneIn = 0
    world.run(for: .milliseconds(500))
    for peer in peers { peer.loop.perform { peer.settle() } }
    guard awaitSettled() else { return }
    waitForLosses()
    guard awaitSettled() else { return }
    for life in oracle.lives where life.isPresent { life.audit() }
    for subscription in oracle.subscriptions { subscription.checkNewest() }
    for peer in peers {
      guard let attachments = peer.attachments else { continue }
      let found = inspector.attachments(of: peer.name)
      oracle.check(
        found == attachments, peer.number,
        "has \(attachments.subscriptions) subscriptions and \(attachments.publications) publications, the broker has \(found)"
      )
    }
  }

  /// Runs until nothing is pending for the peers. Returns false if that takes too long.
  private func awaitSettled() -> Bool {
    let limit = world.now + Self.patience
    // The last pending item may be one that comes and goes.
    var missed: [String] = []
    while let missing = unsettled {
      guard oracle.failures.isEmpty else { return false }
      if missed.last != missing { missed.append(missing) }
      guard world.now < limit else {
        oracle.fail(0, "never came to an end: \(missed.suffix(3).joined(separator: "; "))")
        return false
      }
      play(until: world.now + .milliseconds(50))
    }
    return true
  }

  /// Waits until every topic that had producers, has none now and is set to fail without them has failed.
  private func waitForLosses() {
    let waiting = scenario.topics.compactMap { plan -> (topic: Topic, patience: UInt32)? in
      guard let topic = broker.core.registry.find(plan.name), topic.attached.publications == 0,
        topic.log.head > 0, case .fail(let patience) = topic.settings.whenProducerLost
      else { return nil }
      return (topic, patience)
    }
    guard let longest = waiting.map(\.patience).max() else { return }
    play(until: world.now + .milliseconds(Int64(longest) + 100))
    for (topic, _) in waiting where topic.attached.publications == 0 && !topic.isDeleted {
      oracle.check(topic.condition != .open, 0, "\(topic.name) has lost its producers, and goes on")
    }
  }

  private func endTroubles() {
    agenda = []
    restart()
    for connection in cuts { connection.heal() }
    world.network.heal(address)
    for loop in brokerLoops + peerLoops { loop.resume() }
  }

  private var unsettled: String? {
    for peer in peers { if let what = peer.unsettled { return what } }
    for attacker in attackers where !attacker.isDone { return "the attack \(attacker.attack.kind)" }
    return nil
  }

  /// All participants leave, each in its own way, and the broker must notice.
  private func leave() {
    guard oracle.failures.isEmpty else { return }
    isLeaving = true
    // The rest of a randomly short write would look like activity.
    world.conditions.shortWriteOneIn = 0
    let start = world.now
    // A participant may have left during a network cut; then the broker can notice only the silence.
    let leaving = peers.filter(\.isConnected)
    for peer in leaving { peer.loop.perform { peer.hangUp(peer.plan.farewell) } }
    world.run(for: .milliseconds(100))
    for peer in leaving where peer.plan.farewell == .close || peer.plan.farewell == .reset {
      oracle.check(
        !inspector.hasConnection(named: peer.name), peer.number, "has left, and the broker doesn't notice")
    }
    for peer in peers.sorted(by: { $0.agreedKeepalive < $1.agreedKeepalive }) {
      // The broker checks its connections four times in the shortest deadline, and at least once a second.
      world.run(until: max(world.now, start + peer.agreedKeepalive + .milliseconds(1_100)))
      oracle.check(
        !inspector.hasConnection(named: peer.name), peer.number, "is dead, and the broker doesn't notice")
    }
  }

  private func shutDown() {
    oracle.chronicle.note(0, "the broker is asked to stop")
    endTroubles()
    let end = world.now + scenario.drainTime
    oracle.brokerIsStopping = true
    broker.shutdown()
    while !isStopped.isSet, world.now < end + .milliseconds(-10) { play(until: world.now + Self.tick) }
    oracle.brokerRanOutOfTime = !isStopped.isSet
    awaitEnd()
  }

  private func awaitEnd() {
    let isOver = world.run(limit: .seconds(3)) { isStopped.isSet }
    oracle.check(isOver, 0, "the broker doesn't stop")
    // Wait for the last frames.
    world.run(for: .seconds(1))
    for life in oracle.lives where life.isPresent { life.audit() }
    for subscription in oracle.subscriptions { subscription.checkNewest() }
  }

  private func end() {
    isLeaving = true
    if oracle.failures.isEmpty { inspector.checkEmpty() }
    if !isStopped.isSet {
      oracle.brokerIsStopping = true
      broker.shutdown()
      let isOver = world.run(limit: .seconds(2)) { isStopped.isSet }
      if oracle.failures.isEmpty {
        oracle.check(isOver, 0, "the broker doesn't stop though no client is connected")
      }
    }
    for peer in peers { peer.loop.perform { peer.abandon() } }
    for attacker in attackers { attacker.loop.perform { attacker.leave() } }
    world.run(for: .seconds(3))
    guard oracle.failures.isEmpty else { return }
    for case let peer as LibraryPeer in peers {
      oracle.check(!peer.holdsClient, peer.number, "something keeps its client in memory")
    }
    inspector.checkEmpty()
    inspector.checkMemoryReturns()
  }
}
