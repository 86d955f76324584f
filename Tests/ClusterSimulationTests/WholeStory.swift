import SluiceClient
import SluiceEngineModel
import SluiceIO
import SluiceSimulation
import SluiceTopics

@testable import SluiceCluster

/// The events of one run.
///
/// One in six stories is long: many topics and subscribers, and up to six faults. The others are short: few topics, and one or two faults, the first of which
/// breaks something. Long stories have clients of all kinds; short ones have producers, subscribers and one other kind.
final class WholeStory {
  /// Events of clients, besides faults, that must occur in many stories.
  static let met = [
    "acknowledged", "retried", "delivered again", "left", "committed", "resumed", "answered", "failed",
    "producer restarted", "taken over", "trim", "trimmed away",
  ]

  let cluster: WholeCluster
  private(set) var problems: [String] = []
  /// The faults that had an effect, and the clients' events.
  private(set) var counts: [String: Int] = [:]
  private let isLong: Bool
  /// Whether to play the kind of story of the time when the retained seeds failed: with fewer kinds of faults, and only producers and subscribers.
  private let isFormer: Bool
  private let names = ["a", "b", "c"]
  private let topics: [String]
  private let faults: StoryFaults
  private let loadFlaw: LoadFlaw?
  private let hasFlaw: Bool
  /// Whether a topic is trimmed; false for retained seeds, which are older than trims.
  private let hasTrims: Bool
  private var producers: [NumberedProducer] = []
  private var subscribers: [NumberedSubscriber] = []
  private var patterns: [NumberedPatternSubscriber] = []
  private var loads: [any StoryLoad] = []
  /// The client for a restarted producer.
  private var spare: Client?

  init(
    seed: UInt64, flaw: EngineFlaw? = nil, loadFlaw: LoadFlaw? = nil, isFormer: Bool = false
  ) throws {
    cluster = WholeCluster(seed: seed, conditions: SimulatedConditions())
    faults = StoryFaults(cluster, nodes: names)
    self.isFormer = isFormer
    self.loadFlaw = loadFlaw
    hasFlaw = flaw != nil || loadFlaw != nil
    hasTrims = !isFormer && seed % 7 == 4
    isLong = seed % (isFormer ? 4 : 6) == 0
    topics = (1...(isLong ? 5 : 2)).map { "orders.\($0)" }
    if !isLong { cluster.shards = cluster.pick([2, 4]) }
    cluster.engineOptions.flaw = flaw
    if flaw != nil {
      // The fault shows only at replicas that lag.
      cluster.engineOptions.replicaTimeout = nil
      for server in cluster.engine.servers {
        server.lag = cluster.world.random.next(in: .zero ... .seconds(1))
      }
    }
    if isFormer { cluster.times.initialDelay = .zero }
    // Small ones, so that a run has many checkpoints, and commits of several messages.
    var checkpointBytes = cluster.pick([8 << 20, 2_000, 20_000])
    if flaw == .purgeBeyondFront { checkpointBytes = 2_000 }
    cluster.engineOptions.checkpointBytes = checkpointBytes
    cluster.engineOptions.checkpointInterval = checkpointBytes == 20_000 ? .milliseconds(300) : .zero
    cluster.engineOptions.messageBytes = cluster.pick([.max, .max, 1_500])
    // Less than a producer's records: several commits of a topic, each with a part of them.
    if seed % 3 == 0 { cluster.engineOptions.commitBytes = 300 }
    cluster.engine.faults.resetOneIn = cluster.pick([0, 0, 50])
    cluster.engine.faults.silentOneIn = cluster.pick([0, 0, 100])
  }

  private var world: SimulatedWorld { cluster.world }

  func play() throws {
    defer { for load in loads { load.leave() } }
    guard try begin() else { return }
    for number in 0..<world.random.next(in: isLong ? 3...(isFormer ? 8 : 6) : 1...2) {
      for producer in producers { producer.publish(world.random.next(in: 0...20)) }
      for load in loads { load.act() }
      try faults.make(isFormer ? formerFault(number) : faults.draw(mustBreak: !isLong && number == 0))
      restartProducer()
      world.run(for: world.random.next(in: .milliseconds(20)...(.seconds(4))))
    }
    try faults.end()
    for producer in producers { producer.publish(5) }
    for load in loads { load.finish() }
    if isAllDone(), !isFormer, world.random.oneIn(6) { try takeOver() }
    problems += producers.flatMap(\.problems) + subscribers.flatMap(\.problems) + patterns.flatMap(\.problems)
    problems += loads.flatMap(\.notes.problems) + cluster.stored.problems
    count()
  }

  private func formerFault(_ number: Int) -> StoryFault {
    cluster.pick(isLong || number > 0 ? StoryFault.formerWeighted : StoryFault.formerBreaking)
  }

  /// Waits until nothing is pending.
  private func isAllDone() -> Bool {
    let limit = hasFlaw ? Duration.seconds(30) : .seconds(120)
    if cluster.run(limit: limit, until: { isDone }) { return true }
    problems.append("not all is acknowledged and delivered: \(open)")
    return false
  }

  /// Kills the owner of a topic whose records are all stored: the next owner must not deliver them again.
  private func takeOver() throws {
    guard let owner = cluster.owner(of: topics[0]) else { return }
    owner.kill()
    for producer in producers { producer.publish(2) }
    for load in loads { load.begin() }
    counts["taken over", default: 0] += 1
    world.run(for: world.random.next(in: .zero ... .seconds(4)))
    try cluster.start(owner.name)
    _ = isAllDone()
  }

  private var isDone: Bool {
    producers.allSatisfy(\.isDone)
      && subscribers.allSatisfy { subscriber in
        subscriber.next == producers.first { $0.topic == subscriber.topic }?.sent
      }
      && patterns.allSatisfy { pattern in producers.allSatisfy { pattern.next[$0.topic] == $0.sent } }
      && loads.allSatisfy(\.isDone)
  }

  private func count() {
    for (fault, number) in faults.counts { counts[fault.rawValue, default: 0] += number }
    for load in loads { counts.merge(load.notes.counts, uniquingKeysWith: +) }
    counts["unanswered read"] = cluster.engine.lostReads
  }

  /// Starts the nodes and the clients.
  ///
  /// - Returns: false if that fails without a fault.
  private func begin() throws -> Bool {
    for name in names { try cluster.start(name) }
    guard cluster.settle() else {
      problems.append("the cluster doesn't settle at first")
      return false
    }
    for (number, topic) in topics.enumerated() {
      producers.append(
        NumberedProducer(
          topic, try client(), WholeClusterTests.durable, id: isFormer ? nil : UInt64(number) + 1))
      producers.last?.publish(5)
    }
    guard cluster.run(limit: .seconds(60), until: { producers.allSatisfy(\.isDone) }) else {
      problems.append("nothing can be published at first: \(open)")
      return false
    }
    for topic in topics {
      for _ in 0..<(isLong ? 2 : 1) { subscribers.append(NumberedSubscriber(topic, try client())) }
    }
    for demand in isLong ? [nil, 1, 7] : [cluster.pick([nil, 1, 7])] {
      patterns.append(NumberedPatternSubscriber("orders.*", try client(), demand: demand))
    }
    if !isFormer { try beginLoads() }
    return true
  }

  /// A client of any node, which connects to other nodes itself or uses relaying.
  private func client() throws -> Client {
    let name = cluster.pick(names)
    if isFormer { return try cluster.client(of: name) }
    let routing = cluster.pick([ClientRouting.direct, .relay])
    return try cluster.client(of: name) { $0.routing = routing }
  }

  private func beginLoads() throws {
    let kind = world.random.next(in: 0...3)
    if isLong || kind == 3 { spare = try client() }
    if hasTrims {
      let clients = try names.map { try cluster.client(of: $0) { $0.routing = .relay } }
      loads.append(TrimLoad(cluster, clients, flaw: loadFlaw))
    }
    guard isLong || kind != 3 else { return }
    var clients: [Client] = []
    for name in names {
      let routing = cluster.pick([ClientRouting.direct, .relay])
      clients.append(try cluster.client(of: name) { $0.routing = routing })
    }
    if isLong || kind == 0 {
      loads.append(GroupLoad(cluster, producers[0], clients, flaw: loadFlaw))
    }
    if isLong || kind == 1 {
      loads.append(CursorLoad(cluster, producers[1], clients, flaw: loadFlaw))
    }
    if isLong || kind == 2 { loads.append(RequestLoad(cluster, clients, flaw: loadFlaw)) }
  }

  /// Ends the process of a producer, and starts another one with the acknowledgements that it knew.
  private func restartProducer() {
    guard spare != nil, world.random.oneIn(2), let client = spare.take() else { return }
    producers[0].restart(with: client)
    counts["producer restarted", default: 0] += 1
  }

  /// The pending work, for messages.
  private var open: String {
    let published = producers.map { "\($0.topic) \($0.acknowledged) of \($0.sent)" }
    let behind = subscribers.map { "\($0.topic) \($0.next)" }
    let routes = topics.map { topic in
      "\(topic): "
        + cluster.running.map { "\($0.name) \($0.member.routes.route(of: topic))" }.joined(separator: ", ")
    }
    return
      "acknowledged \(published), delivered \(behind), by patterns \(patterns.map { $0.next.sorted { $0.key < $1.key }.map(\.value) }), routes \(routes), \(loads.map(\.open))"
  }
}
