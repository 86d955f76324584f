import SluiceClient
import SluiceEngineModel
import SluiceIO
import SluiceSimulation
import SluiceTopics

@testable import SluiceCluster

/// What happens in one run.
///
/// One in four stories is long: many topics and subscribers, and up to eight disturbances. The others are short: few topics, and one or two disturbances, each of
/// which breaks something.
final class WholeStory {
  /// What is wrong with a node, with the engine, or with the ways between them.
  private enum Disturbance: CaseIterable {
    case kill, start, stall, cut, heal, lag, crash, restart, drain, undrain

    /// It breaks something, whatever has happened before.
    static let breaking: [Disturbance] = [.kill, .stall, .cut, .lag, .crash, .drain]
    static let weighted = allCases + [.kill, .start, .stall]
  }

  let cluster: WholeCluster
  private(set) var problems: [String] = []
  private let isLong: Bool
  private let names = ["a", "b", "c"]
  private let topics: [String]
  private var producers: [NumberedProducer] = []
  private var subscribers: [NumberedSubscriber] = []
  private var patterns: [NumberedPatternSubscriber] = []

  init(
    seed: UInt64, flaw: EngineFlaw? = nil, initialDelay: Duration = LeaseTimes().initialDelay
  ) throws {
    cluster = WholeCluster(seed: seed, conditions: SimulatedConditions())
    isLong = seed % 4 == 0
    topics = (1...(isLong ? 5 : 2)).map { "orders.\($0)" }
    if !isLong { cluster.shards = pick([2, 4]) }
    cluster.engineOptions.flaw = flaw
    // What is broken shows at replicas only.
    if flaw != nil { cluster.engineOptions.replicaTimeout = nil }
    cluster.times.initialDelay = initialDelay
    // Small ones, so that a run has many checkpoints, and commits of several messages.
    let checkpointBytes = pick([8 << 20, 2_000, 20_000])
    cluster.engineOptions.checkpointBytes = checkpointBytes
    cluster.engineOptions.checkpointInterval = checkpointBytes == 20_000 ? .milliseconds(300) : .zero
    cluster.engineOptions.messageBytes = pick([.max, .max, 1_500])
    cluster.engine.faults.resetOneIn = pick([0, 0, 50])
    cluster.engine.faults.silentOneIn = pick([0, 0, 100])
  }

  private var world: SimulatedWorld { cluster.world }

  private func pick<Element>(_ choices: [Element]) -> Element {
    choices[cluster.world.random.next(in: 0...(choices.count - 1))]
  }

  private func duration(_ range: ClosedRange<Duration>) -> Duration { world.random.next(in: range) }

  func play() throws {
    guard try begin() else { return }
    for number in 0..<world.random.next(in: isLong ? 3...8 : 1...2) {
      for producer in producers { producer.publish(world.random.next(in: 0...20)) }
      try disturb(pick(isLong || number > 0 ? Disturbance.weighted : Disturbance.breaking))
      world.run(for: duration(.milliseconds(20)...(.seconds(4))))
    }
    try calmDown()
    for producer in producers { producer.publish(5) }
    let isDone = cluster.run(limit: .seconds(120)) {
      producers.allSatisfy(\.isDone)
        && subscribers.allSatisfy { subscriber in
          subscriber.next == producers.first { $0.topic == subscriber.topic }?.sent
        }
        && patterns.allSatisfy { pattern in producers.allSatisfy { pattern.next[$0.topic] == $0.sent } }
    }
    if !isDone { problems.append("not all is acknowledged and delivered: \(open)") }
    problems += producers.flatMap(\.problems) + subscribers.flatMap(\.problems) + patterns.flatMap(\.problems)
  }

  /// Starts the nodes and the clients.
  ///
  /// - Returns: false when that fails without a disturbance.
  private func begin() throws -> Bool {
    for name in names { try cluster.start(name) }
    guard cluster.settle() else {
      problems.append("the cluster doesn't settle at first")
      return false
    }
    for topic in topics {
      producers.append(
        NumberedProducer(topic, try cluster.client(of: pick(names)), WholeClusterTests.durable))
      producers.last?.publish(5)
    }
    guard cluster.run(limit: .seconds(60), until: { producers.allSatisfy(\.isDone) }) else {
      problems.append("nothing can be published at first: \(open)")
      return false
    }
    for topic in topics {
      for _ in 0..<(isLong ? 2 : 1) {
        subscribers.append(NumberedSubscriber(topic, try cluster.client(of: pick(names))))
      }
    }
    for demand in isLong ? [nil, 1, 7] : [pick([nil, 1, 7])] {
      patterns.append(
        NumberedPatternSubscriber("orders.*", try cluster.client(of: pick(names)), demand: demand))
    }
    return true
  }

  /// What is missing, for messages.
  private var open: String {
    let late = producers.filter { !$0.isDone }.map { "\($0.topic) \($0.acknowledged) of \($0.sent)" }
    let behind = subscribers.map { "\($0.topic) \($0.next)" }
    let routes = topics.map { topic in
      "\(topic): "
        + cluster.running.map { "\($0.name) \($0.member.routes.route(of: topic))" }.joined(separator: ", ")
    }
    return
      "acknowledged \(late), delivered \(behind), by patterns \(patterns.map { $0.next.sorted { $0.key < $1.key }.map(\.value) }), routes \(routes)"
  }

  private func disturb(_ disturbance: Disturbance) throws {
    let node = cluster.node(pick(names))
    switch disturbance {
    case .kill: if cluster.running.count > 1 { node?.kill() }
    case .start: if let node, !node.isRunning { try cluster.start(node.name) }
    case .stall:
      guard let node, node.isRunning else { return }
      let length = duration(.milliseconds(100)...(.seconds(6)))
      for loop in node.loops { loop.stall(for: length) }
    case .cut: if let node { cluster.cutEngine(from: node.name) }
    case .heal: if let node { cluster.healEngine(for: node.name) }
    case .lag: cluster.engine.servers[world.random.next(in: 0...2)].lag = duration(.zero...(.seconds(2)))
    case .crash: cluster.engine.crash(world.random.next(in: 0...2))
    case .restart: cluster.engine.restart(world.random.next(in: 0...2))
    case .drain: node?.member.drain(pick(names)) { _ in }
    case .undrain: node?.member.drain(pick(names), false) { _ in }
    }
  }

  /// Nothing is broken any more.
  private func calmDown() throws {
    cluster.engine.heal()
    for name in names {
      cluster.healEngine(for: name)
      if cluster.node(name)?.isRunning != true { try cluster.start(name) }
      for loop in cluster.node(name)?.loops ?? [] { loop.resume() }
    }
  }
}
