import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceTopics
import SluiceWire
import Synchronization

/// Requests every loop's part of a snapshot, and merges the parts.
final class SnapshotGathering: Sendable {
  /// A topic in the snapshot.
  private struct Subject: Sendable {
    var topic: Topic
    var summary: TopicSummary
    /// The traffic of loops without attached streams.
    var traffic: TrafficCount
  }

  struct State: Sendable {
    var missing: Int
    /// In the order of the subjects.
    var topics: [TopicFindings]
    /// In the order of the loops.
    var loops: [LoopSnapshot]
    var connections: [ConnectionSnapshot] = []
    var connectionCount = 0
    var ownConnections = 0
    var selectedConnections = 0
    var doors: [DoorName: Int] = [:]
    var latency = Histogram()
    var time: Int64 = 0
    var uptime: UInt64 = 0
  }

  /// The most durable cursors and groups that are listed in total.
  private static let describedConsumers = 10_000

  let request: SnapshotRequest
  let startedAt: MonotonicTime
  private let core: BrokerCore
  private let contexts: [LoopContext]
  private let metrics: @Sendable () -> BrokerMetrics
  private let topicCount: Int
  private let subjects: [Subject]
  /// The loop states of the subjects by loop, each with the index of its subject.
  private let loopStates: [[(subject: Int, loopState: TopicLoopState)]]
  private let state: Mutex<State>
  private let completion: @Sendable (GatheredSnapshot) -> Void

  init(
    _ request: SnapshotRequest, of core: BrokerCore, on contexts: [LoopContext],
    metrics: @escaping @Sendable () -> BrokerMetrics,
    completion: @escaping @Sendable (GatheredSnapshot) -> Void
  ) {
    self.request = request
    self.core = core
    self.contexts = contexts
    self.metrics = metrics
    self.completion = completion
    startedAt = core.startedAt
    let registry = core.registry
    topicCount = registry.count
    var subjects: [Subject] = []
    var loopStates: [[(subject: Int, loopState: TopicLoopState)]] = contexts.map { _ in [] }
    let places = Dictionary(
      uniqueKeysWithValues: contexts.enumerated().map { (ObjectIdentifier($1.topics), $0) })
    for topic in Self.topics(request, in: registry) {
      let summary = topic.summary
      let (traffic, present) = topic.state.withLock { ($0.traffic, $0.loopStates) }
      for loopState in present {
        if let place = places[ObjectIdentifier(loopState.loop)] {
          loopStates[place].append((subjects.count, loopState))
        }
      }
      subjects.append(Subject(topic: topic, summary: summary, traffic: traffic))
    }
    self.loopStates = loopStates
    self.subjects = subjects
    state = Mutex(
      State(
        missing: contexts.count, topics: subjects.map { TopicFindings(traffic: $0.traffic) },
        loops: contexts.map { _ in LoopSnapshot(connections: 0, turns: Histogram()) }))
  }

  /// Returns the topics to list, in order of name.
  private static func topics(_ request: SnapshotRequest, in registry: TopicRegistry) -> [Topic] {
    if let name = request.topic { return registry.find(name).map { [$0] } ?? [] }
    let topics = registry.all
    guard topics.count > request.topics else { return topics }
    let ranked = topics.map { (head: $0.epoch.log.head, topic: $0) }
    return ranked.sorted { $0.head > $1.head }.prefix(max(request.topics, 0)).map(\.topic)
      .sorted { NameSpan.precedes($0.name, $1.name) }
  }

  func begin() {
    for (index, context) in contexts.enumerated() {
      LoopSnapshotter(for: self, at: context, number: index, loopStates: loopStates[index]).goOn()
    }
  }

  /// Adds a loop's findings; nil for a loop that has ended.
  func take(_ findings: LoopFindings?, of loop: Int) {
    let finished = state.withLock { state -> State? in
      if let findings { state.add(findings, of: loop) }
      state.missing -= 1
      return state.missing == 0 ? state : nil
    }
    if let finished { completion(GatheredSnapshot(gathering: self, found: finished)) }
  }

  /// Returns a filter for the names of the durable cursors and groups of a topic; nil to list all.
  private func consumerFilter(_ topic: String) -> ((String) -> Bool)? {
    let filter = request.filter
    return filter.isEmpty || filter.selects(topic) ? nil : { filter.selects($0) }
  }

  fileprivate func result(_ found: State) -> BrokerSnapshot {
    var snapshot = BrokerSnapshot()
    snapshot.time = found.time
    snapshot.uptime = found.uptime
    snapshot.topicCount = topicCount
    let stores = core.stores
    snapshot.storage = stores.snapshot
    let waiters = Dictionary(grouping: stores.waiters, by: \.topic)
    let now = startedAt + .milliseconds(Int64(clamping: found.uptime))
    // How many more consumers may be listed.
    var left = request.consumersPerTopic > 0 ? Self.describedConsumers : 0
    snapshot.topics = zip(subjects, found.topics).map { subject, findings in
      var topic = TopicSnapshot(summary: subject.summary, settings: subject.topic.settings)
      topic.withoutProducers = subject.topic.timeWithoutProducers(now: now)
      topic.lead = subject.topic.epoch.lead(at: found.time)
      topic.isStated = subject.topic.isStated
      topic.lost = subject.topic.historyBreak(now: now).map {
        LostHistory(from: $0.from, before: $0.before, age: (now - $0.time).clampedMilliseconds)
      }
      findings.show(in: &topic, request)
      topic.show(subject.topic.dropped)
      topic.holds = subject.topic.holds.withLock { $0.shown(at: now) }
      if left > 0 {
        topic.consumers = subject.topic.consumers(
          atMost: min(request.consumersPerTopic, left),
          cursors: request.cursorsPerTopic.map { min($0, left) },
          selecting: consumerFilter(subject.topic.name),
          now: now)
        topic.consumers.measure(in: subject.topic.epoch, wallClock: found.time)
        left -= topic.consumers.furthest.count
      }
      topic.measureSubscriptions(in: subject.topic.epoch, wallClock: found.time)
      if let waiting = waiters[subject.summary.topic],
        let storage = stores.service(for: subject.summary.topic)
      {
        topic.show(waiting, at: storage.now, request)
      }
      return topic
    }
    let connections = found.connections.sorted { $0.id < $1.id }
    snapshot.connections = Array(connections.prefix(max(request.connections, 0)))
    snapshot.connectionCount = found.connectionCount
    snapshot.selectedConnections = request.filter.isEmpty ? found.connectionCount : found.selectedConnections
    snapshot.ownConnections = found.ownConnections
    snapshot.doors = found.doors
    snapshot.loops = found.loops
    snapshot.latency = found.latency
    snapshot.commits = stores.commitHistogram ?? Histogram()
    snapshot.kept = KeptSnapshot(core.memory, nearlyFull: core.configuration.problems.fullness)
    let metrics = metrics()
    snapshot.metrics = BrokerMetric.allCases.map { ($0, metrics[$0]) }
    return snapshot
  }
}

extension TopicSnapshot {
  fileprivate mutating func show(_ dropped: DroppedRecords) {
    self.dropped = dropped
    traffic.dropped = dropped.total.records
    traffic.droppedBytes = dropped.total.bytes
  }

  /// Sets the ages of the next records for listed subscriptions.
  fileprivate mutating func measureSubscriptions(in epoch: TopicEpoch, wallClock: Int64) {
    for index in subscriptions.indices where subscriptions[index].lag > 0 {
      subscriptions[index].info.measure(in: epoch, wallClock: wallClock)
      guard let (time, _) = epoch.backlog(from: subscriptions[index].info.nextOffset).found else { continue }
      subscriptions[index].age = UInt64(max(wallClock - time, 0))
    }
  }

  /// Adds the producers that wait for the store, before the others.
  fileprivate mutating func show(
    _ waiters: [StoreWaiter], at now: MonotonicTime, _ request: SnapshotRequest
  ) {
    waitingForStorage = waiters.count
    heldUp = max(heldUp, waiters.first?.waiting(at: now) ?? 0)
    let listed = waiters.prefix(max(request.publicationsPerTopic, 0)).map {
      PublicationSnapshot(info: $0.info(at: now), identity: $0.identity)
    }
    publications = Array((listed + publications).prefix(max(request.publicationsPerTopic, 0)))
  }
}

extension SnapshotGathering.State {
  fileprivate mutating func add(_ findings: LoopFindings, of loop: Int) {
    for (subject, found) in findings.topics { topics[subject].add(found) }
    loops[loop] = findings.loop
    connections += findings.connections
    connectionCount += findings.loop.connections
    selectedConnections += findings.selectedConnections
    ownConnections += findings.loop.ownConnections
    doors.merge(findings.loop.doors) { $0 + $1 }
    latency.add(findings.latency)
    time = max(time, findings.time)
    uptime = max(uptime, findings.uptime)
  }
}

/// The loops' findings for a snapshot. Assembling them takes milliseconds with thousands of topics, which is too long for a loop of the broker.
public struct GatheredSnapshot: Sendable {
  fileprivate let gathering: SnapshotGathering
  fileprivate let found: SnapshotGathering.State

  /// Assembles the snapshot on the calling thread.
  public func assembled() -> BrokerSnapshot { gathering.result(found) }
}
