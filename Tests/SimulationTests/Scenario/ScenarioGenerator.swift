import SluiceBroker
import SluiceIO
import SluiceSimulation
import SluiceWire

extension Scenario {
  /// The scenario of that seed.
  static func random(_ seed: UInt64) -> Scenario {
    var generator = ScenarioGenerator(seed: seed)
    return generator.make()
  }

  /// Returns the scenario, with a probability of one half, with trims and changed limits added. Limits change only for topics whose clients state
  /// none.
  func withChanges() -> Scenario {
    var random = SeededRandom(seed: seed &* 0xa076_1d64_78bd_642f &+ 5)
    var scenario = self
    guard random.oneIn(2) else { return scenario }
    for _ in 0..<random.next(in: 1...6) {
      let topic = topics[random.next(in: 0...topics.count - 1)]
      let time = random.next(in: .zero...length)
      let kind: Disturbance.Kind
      if topic.stated != nil || random.oneIn(2) {
        kind = .trim(topic: topic.name, random.oneIn(3) ? 0 : random.next(below: 60))
      } else {
        var settings = TopicSettings()
        switch random.next(below: 3) {
        case 0: settings.replayRecords = random.oneIn(3) ? TopicSettings.unlimited : random.next(below: 100)
        case 1: settings.replayBytes = random.oneIn(3) ? TopicSettings.unlimited : random.next(below: 20_000)
        default: settings.replayAge = random.oneIn(3) ? TopicSettings.unlimited : random.next(below: 1_000)
        }
        kind = .set(topic: topic.name, settings)
      }
      scenario.disturbances.append(Disturbance(time: time, kind: kind))
    }
    scenario.disturbances.sort { $0.time < $1.time }
    return scenario
  }
}

/// Draws every part of a scenario at random.
private struct ScenarioGenerator {
  let seed: UInt64
  var random: SeededRandom
  /// Whether records are large, so that logs drop some before a subscriber has read them.
  var isBulky = false
  /// Whether the network only delays. Any missing frame is then a fault of the broker.
  var isPeaceful = false
  /// Whether topics may keep only the newest record of each key.
  var isKeyed = false

  init(seed: UInt64) {
    self.seed = seed
    random = SeededRandom(seed: seed &* 0xd134_2543_de82_ef95 &+ 1)
  }

  mutating func make() -> Scenario {
    isBulky = random.oneIn(5)
    isPeaceful = random.oneIn(3)
    isKeyed = random.oneIn(4)
    var scenario = Scenario(seed: seed)
    scenario.isKeyed = isKeyed
    scenario.brokerLoops = random.next(in: 1...4)
    scenario.peerLoops = random.next(in: 1...3)
    scenario.length = random.next(in: .milliseconds(200) ... .milliseconds(2_000))
    scenario.conditions = conditions()
    scenario.limits = limits()
    scenario.drainTime = random.next(in: .milliseconds(500) ... .seconds(5))
    if random.oneIn(2) { scenario.topicDefaults = settings(complete: true) }
    scenario.topics = (0..<random.next(in: 1...3)).map { number in
      TopicPlan(
        name: ["orders", "prices.eu", "log"][number],
        settings: random.oneIn(2) ? settings(complete: false) : nil)
    }
    scenario.peers = (0..<random.next(in: 2...6)).map { _ in peer(in: scenario) }
    // At least one producer publishes.
    if scenario.peers.allSatisfy(\.producers.isEmpty) {
      scenario.peers[0].producers = [producer(on: scenario.topics[0].name)]
    }
    scenario.disturbances = disturbances(in: scenario)
    interrupt(&scenario)
    pace(&scenario)
    switch random.next(below: 4) {
    case 0: scenario.ending = .shutdown(random.next(in: .zero...scenario.length))
    case 1 where random.oneIn(4): scenario.ending = .stop(random.next(in: .zero...scenario.length))
    default: break
    }
    return scenario
  }

  // MARK: The surroundings

  private mutating func conditions() -> SimulatedConditions {
    var conditions = SimulatedConditions()
    conditions.latency = .microseconds(10)...random.next(in: .microseconds(50) ... .milliseconds(5))
    conditions.bufferSize = isBulky ? random.next(in: 8_192...262_144) : random.next(in: 200...65_536)
    conditions.wakeDelay = .zero...random.next(in: .zero ... .microseconds(500))
    conditions.timerLateness = random.next(in: .zero ... .milliseconds(2))
    conditions.lateEventOneIn = random.next(in: 0...8)
    if conditions.lateEventOneIn == 1 { conditions.lateEventOneIn = 2 }
    conditions.shortWriteOneIn = random.next(in: 0...8)
    conditions.partialReadOneIn = random.next(in: 0...8)
    conditions.splitOneIn = random.next(in: 0...8)
    if random.oneIn(4) { conditions.refusedOneIn = 8 }
    if random.oneIn(4) {
      conditions.bytesPerSecond = isBulky ? 20_000_000 : random.next(in: 200_000...5_000_000)
    }
    return conditions
  }

  private mutating func limits() -> BrokerLimits {
    var limits = BrokerLimits()
    limits.record = isBulky ? 100_000 : random.next(in: 300...60_000)
    limits.frame = max(limits.record + 1_024, 65_536) + random.next(in: 0...65_536)
    limits.keepalive = UInt32(random.next(in: 400...3_000))
    limits.producerWindow = UInt64(random.oneIn(3) ? random.next(in: 2...20) : random.next(in: 20...2_000))
    limits.writeBatch = random.oneIn(2) ? 4_096 : random.next(in: 4_096...300_000)
    limits.answers = random.oneIn(2) ? 4_096 : random.next(in: 4_096...300_000)
    limits.streams = 200
    limits.handshake = .milliseconds(500)
    return limits
  }

  private mutating func settings(complete: Bool) -> TopicSettings {
    func some(_ value: Int) -> UInt64? {
      value < 0 ? (complete ? TopicSettings.unlimited : nil) : UInt64(value)
    }
    var settings = TopicSettings()
    settings.replayRecords = some(random.oneIn(2) ? -1 : random.next(in: 0...(random.oneIn(2) ? 20 : 500)))
    settings.replayBytes = some(random.oneIn(2) ? -1 : random.next(in: 0...(isBulky ? 500_000 : 20_000)))
    settings.replayAge = some(random.oneIn(3) ? random.next(in: 0...1_000) : -1)
    if isKeyed, !random.oneIn(4) { settings.compact = true }
    return settings
  }

  // MARK: Peers

  private mutating func peer(in scenario: Scenario) -> PeerPlan {
    var peer = PeerPlan()
    peer.usesLibrary = random.oneIn(2)
    peer.persists = peer.usesLibrary && !random.oneIn(3)
    peer.loop = random.next(in: 0...scenario.peerLoops - 1)
    peer.connectsAfter = random.oneIn(3) ? random.next(in: .zero...scenario.length) : .zero
    peer.maximumFrame = UInt32(max(scenario.limits.record + 1_024, 65_536) + random.next(in: 0...100_000))
    peer.keepalive = UInt32(random.next(in: 400...4_000))
    if random.oneIn(3) {
      peer.readSize = random.oneIn(2) ? 64 << 10 : random.next(in: 100...4_000)
      peer.pauseOneIn = random.next(in: 2...10)
      peer.pauses = .zero...random.next(in: .milliseconds(1) ... .milliseconds(40))
    } else {
      peer.heartbeats = random.oneIn(2)
    }
    peer.reconnects = !random.oneIn(4)
    peer.farewell = Departure.allCases[random.next(in: 0...3)]
    // Otherwise it would reconnect.
    if peer.persists, peer.farewell != .silence { peer.farewell = .close }
    for topic in scenario.topics {
      if random.oneIn(3) { peer.producers.append(producer(on: topic.name)) }
      for _ in 0..<random.next(in: 0...2) { peer.subscribers.append(subscriber(on: topic.name)) }
    }
    return peer
  }

  private mutating func producer(on topic: String) -> ProducerPlan {
    var producer = ProducerPlan(topic: topic)
    producer.acknowledges = !random.oneIn(4)
    producer.batch = 1...(random.oneIn(3) ? 1 : random.next(in: 1...50))
    producer.burst = 1...random.next(in: 1...100)
    producer.pauses = .zero...random.next(in: .zero ... .milliseconds(20))
    producer.records = random.next(in: 1...(random.oneIn(3) ? 400 : 100))
    producer.sizes = 0...(random.oneIn(2) ? 40 : 1_500)
    if isBulky {
      producer.records = random.next(in: 40...160)
      producer.sizes = 0...48_000
      producer.batch = 1...4
    }
    switch random.next(below: 10) {
    case 0: producer.finale = .complete
    case 1: producer.finale = .fail
    case 2...3: producer.finale = .cancel
    default: break
    }
    producer.continues = !random.oneIn(4)
    return producer
  }

  private mutating func subscriber(on topic: String) -> SubscriberPlan {
    var subscriber = SubscriberPlan(topic: topic)
    switch random.next(below: 8) {
    case 0: subscriber.start = .earliest
    case 1: subscriber.start = .new
    case 2: subscriber.start = .last(random.next(below: 100))
    case 3: subscriber.start = .offset(random.next(below: 100))
    default: break
    }
    subscriber.lag = random.oneIn(3) ? .fail : .skip
    switch random.next(below: 4) {
    case 0...1: subscriber.demand = .unlimited
    case 2: subscriber.demand = .one
    default: subscriber.demand = .bursts(random.next(in: 1...(random.oneIn(2) ? 8 : 200)))
    }
    subscriber.thinking = random.oneIn(2) ? .zero : random.next(in: .zero ... .milliseconds(100))
    subscriber.repeatsGrants = random.oneIn(3)
    subscriber.cancelOneIn = random.oneIn(3) ? random.next(in: 1...5) : 0
    subscriber.subscriptions = random.next(in: 1...4)
    subscriber.resumes = !random.oneIn(3)
    if !isKeyed, random.oneIn(4) { subscriber.filter = filter() }
    return subscriber
  }

  /// A filter on the keys and headers of ``FrameProducer`` and ``LibraryProducer``, which about one in eight of their records has.
  private mutating func filter() -> RecordFilter {
    switch random.next(below: 5) {
    case 0: RecordFilter([.init(.key, .exists)])
    case 1: RecordFilter([.init(.key, .equals(Array("key \(random.next(below: 7))".utf8)))])
    case 2: RecordFilter([.init(.header("n"), .hasPrefix(Array("1".utf8)))])
    case 3: RecordFilter([.init(.key, .hasPrefix(Array("key".utf8))), .init(.header("n"), .exists)])
    default: RecordFilter([.init(.header("never"), .exists)])
    }
  }

  // MARK: What goes wrong

  private mutating func disturbances(in scenario: Scenario) -> [Disturbance] {
    var all: [Disturbance] = []
    for _ in 0..<random.next(in: 0...8) {
      let time = random.next(in: .zero...scenario.length)
      if let kind = random.oneIn(3) || isPeaceful ? request(in: scenario) : trouble(in: scenario) {
        all.append(Disturbance(time: time, kind: kind))
      }
    }
    return all.sorted { $0.time < $1.time }
  }

  /// In one scenario of three, peers that reconnect by themselves suffer many faults during their work.
  private mutating func interrupt(_ scenario: inout Scenario) {
    let persistent = scenario.peers.indices.filter { scenario.peers[$0].persists }
    guard !persistent.isEmpty, !isPeaceful, random.oneIn(2) else { return }
    // Acknowledgements travel longer, and so are lost more often.
    scenario.conditions.latency = .microseconds(10)...random.next(in: .milliseconds(1) ... .milliseconds(15))
    for index in persistent {
      for producer in scenario.peers[index].producers.indices {
        scenario.peers[index].producers[producer].burst = 1...random.next(in: 1...8)
        scenario.peers[index].producers[producer].pauses = .zero ... .milliseconds(20)
      }
    }
    for _ in 0..<random.next(in: 2...20) {
      let peer = persistent[random.next(in: 0...persistent.count - 1)]
      let time = random.next(in: .zero...scenario.length)
      let kind: Disturbance.Kind
      switch random.next(below: 16) {
      case 0: kind = .crash(random.next(in: .zero ... .milliseconds(300)))
      case 1: kind = .hangUp(peer: peer, .cut)
      case 2...4: kind = .cut(peer: peer, random.next(in: .milliseconds(1) ... .milliseconds(1_500)))
      default: kind = .reset(peer: peer)
      }
      scenario.disturbances.append(Disturbance(time: time, kind: kind))
    }
    scenario.disturbances.sort { $0.time < $1.time }
  }

  /// In one scenario of three, some topics block their producers.
  private mutating func pace(_ scenario: inout Scenario) {
    guard random.oneIn(3) else { return }
    for index in scenario.topics.indices where random.oneIn(2) {
      var settings = scenario.topics[index].settings ?? TopicSettings()
      settings.flow = random.oneIn(3) ? .fastest : .lossless
      settings.bufferRecords = UInt64(random.next(in: 0...(random.oneIn(2) ? 5 : 200)))
      settings.bufferBytes = UInt64(random.next(in: 1...(isBulky ? 1_000_000 : 50_000)))
      settings.withoutSubscribers = TopicSettings.WhenAlone.allCases[random.next(in: 0...2)]
      if random.oneIn(4) { settings.connect = .auto(UInt32(random.next(in: 1...3))) }
      scenario.topics[index].settings = settings
    }
  }

  private mutating func request(in scenario: Scenario) -> Disturbance.Kind? {
    let topic = scenario.topics[random.next(in: 0...scenario.topics.count - 1)].name
    switch random.next(below: 8) {
    case 0...2: return .show(topic: topic)
    case 3: return .list
    case 4: return .create(topic: topic)
    case 5: return .delete(topic: topic)
    default: return .attack(Attack.random(&random))
    }
  }

  private mutating func trouble(in scenario: Scenario) -> Disturbance.Kind {
    let peer = random.next(in: 0...scenario.peers.count - 1)
    switch random.next(below: 8) {
    case 6: return .kill(peer: peer)
    case 7 where random.oneIn(2): return .crash(random.next(in: .milliseconds(1) ... .seconds(1)))
    case 0: return .hangUp(peer: peer, Departure.allCases[random.next(in: 0...3)])
    case 1...2: return .cut(peer: peer, random.next(in: .milliseconds(1) ... .seconds(5)))
    case 3: return .reset(peer: peer)
    case 4: return .partition(random.next(in: .milliseconds(1) ... .seconds(3)))
    default:
      let loops = scenario.brokerLoops + scenario.peerLoops
      return .stall(loop: random.next(in: 0...loops - 1), random.next(in: .milliseconds(1) ... .seconds(1)))
    }
  }
}
