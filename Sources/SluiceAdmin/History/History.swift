import SluiceBroker
import SluiceWire

/// The broker's last hours: numbers of the broker, and of its most active topics, at several resolutions.
///
/// A value without a clock: the input is a snapshot about once a second, the output are charts. Bounded: ``bytes`` is its size with all series full, each
/// topic has one series of each ``TopicMeasure``, and at most ``HistoryLimits/topics`` topics have series. A topic that becomes more active than one with
/// series replaces that one.
struct History: Sendable {
  /// A number of the broker. The raw value is its name in the API.
  enum BrokerMeasure: String, CaseIterable, Sendable {
    /// Records per second.
    case received, sent
    /// Bytes per second.
    case receivedBytes, sentBytes
    case connections
    /// Bytes of memory that the broker counts, and of the process.
    case memory, residentBytes
    /// Bytes in use in the store; empty without a store.
    case storage
    /// Turns of 134 ms and more of all loops, per second.
    case slowTurns
    /// Rejected credentials, and dropped records, per second.
    case rejectedLogins, droppedRecords
    /// Commits per second that the cluster's engine has stored for this node, and the milliseconds per commit; empty without a cluster.
    case commits, commitMilliseconds
    /// Shards that this node owns; empty without a cluster.
    case shards
  }

  /// A number of a topic.
  enum TopicMeasure: String, CaseIterable, Sendable {
    /// Records per second.
    case received, sent
    /// The largest lag of a subscription in records.
    case lag
    /// The largest lag of a durable cursor or group in records, and its age in seconds.
    case consumerLag, consumerAge
    /// The longest wait of a producer in seconds.
    case heldUp
    /// Bytes of the topic's records.
    case bytes
    /// Dropped records per second.
    case dropped
  }

  private struct TopicHistory: Sendable {
    var epoch: UInt64
    var series: [HistorySeries]
    /// Records in and out per sample, smoothed. It ranks topics by activity.
    var activity = 0.0
    /// The time of the last snapshot that contained it.
    var seen: Int64
  }

  /// The counters of a sample. The rates of the next sample are the differences from them.
  private struct Counters: Sendable {
    var traffic = TopicTraffic()
    var dropped: UInt64 = 0
  }

  let limits: HistoryLimits
  let resolutions: [HistorySeries.Resolution]
  private var broker: [HistorySeries]
  private var topics: [String: TopicHistory] = [:]
  private var counters: [String: (epoch: UInt64, counters: Counters)] = [:]
  private var metrics: [BrokerMetric: Int] = [:]
  private var slowTurns: UInt64 = 0
  /// The total commits of the node's shards, and their total time in nanoseconds.
  private var commits: (count: UInt64, time: UInt64)?
  private var time: Int64?

  init(_ limits: HistoryLimits = HistoryLimits()) {
    self.limits = limits
    resolutions = HistorySeries.resolutions(for: limits.length)
    broker = BrokerMeasure.allCases.map { [resolutions] _ in HistorySeries(resolutions) }
  }

  /// The bytes of all values when every series is full.
  var bytes: Int {
    let series = BrokerMeasure.allCases.count + limits.topics * TopicMeasure.allCases.count
    return series * HistorySeries.bytes(resolutions)
  }

  /// The names of the topics with series.
  var topicNames: [String] { topics.keys.sorted() }

  // MARK: Adding

  /// Adds a sample of the broker.
  ///
  /// - Parameters:
  ///   - residentBytes: the memory of the process.
  ///   - cluster: the cluster that the broker is a node of; nil for none.
  mutating func add(
    _ snapshot: BrokerSnapshot, residentBytes: UInt64, cluster: ClusterSnapshot? = nil
  ) {
    guard limits.length > 0, snapshot.time > time ?? .min else { return }
    let seconds = time.map { Double(snapshot.time - $0) / 1000 }
    var dropped = 0.0
    for topic in snapshot.topics { dropped += add(topic, seconds, at: snapshot.time) }
    forget(snapshot)
    addBroker(snapshot, seconds, dropped: dropped, residentBytes, cluster)
    time = snapshot.time
  }

  private mutating func addBroker(
    _ snapshot: BrokerSnapshot, _ seconds: Double?, dropped: Double, _ residentBytes: UInt64,
    _ cluster: ClusterSnapshot?
  ) {
    let now = Dictionary(snapshot.metrics.map { ($0.metric, $0.value) }, uniquingKeysWith: max)
    func rate(_ metric: BrokerMetric) -> Double? {
      guard let seconds, let before = metrics[metric] else { return nil }
      return Double(max(now[metric, default: 0] - before, 0)) / seconds
    }
    let slow = snapshot.loops.reduce(0 as UInt64) { $0 + $1.slowTurns }
    let stored = commits(in: cluster)
    for (index, measure) in BrokerMeasure.allCases.enumerated() {
      let value: Double? =
        switch measure {
        case .received: rate(.recordsReceived)
        case .sent: rate(.recordsSent)
        case .receivedBytes: rate(.bytesReceived)
        case .sentBytes: rate(.bytesSent)
        case .connections: Double(snapshot.connectionCount)
        case .memory: Double(now[.memoryUsed, default: 0])
        case .residentBytes: Double(residentBytes)
        case .storage: snapshot.storage.map { Double($0.usedBytes) }
        case .slowTurns: seconds.map { Double(slow - min(slowTurns, slow)) / $0 }
        case .rejectedLogins: rate(.failedAuthentications)
        case .droppedRecords: seconds.map { dropped / $0 }
        case .commits: seconds.flatMap { seconds in stored.map { Double($0.count) / seconds } }
        case .commitMilliseconds:
          stored.flatMap { $0.count == 0 ? nil : Double($0.time) / Double($0.count) / 1e6 }
        case .shards: cluster.map { Double($0.owned) }
        }
      if let value { broker[index].add(value, at: snapshot.time) }
    }
    metrics = now
    slowTurns = slow
  }

  /// - Returns: the commits since the last sample, and their time in nanoseconds; nil for the first sample, and without a cluster.
  private mutating func commits(in cluster: ClusterSnapshot?) -> (count: UInt64, time: UInt64)? {
    let before = commits
    commits = cluster.map { ($0.commitCounts.reduce(0, +), $0.commitTotal) }
    guard let before, let now = commits, now.count >= before.count, now.time >= before.time else {
      return nil
    }
    return (now.count - before.count, now.time - before.time)
  }

  /// - Returns: the records that the topic's limits have dropped since the last sample.
  private mutating func add(_ topic: TopicSnapshot, _ seconds: Double?, at now: Int64) -> Double {
    let name = topic.summary.topic
    let before = counters[name].flatMap { $0.epoch == topic.summary.epoch ? $0.counters : nil }
    var counter = Counters(traffic: topic.traffic)
    counter.dropped = topic.dropped.total.records
    counters[name] = (topic.summary.epoch, counter)
    func growth(_ value: UInt64, _ former: UInt64?) -> Double {
      former.map { Double(value - min($0, value)) } ?? 0
    }
    let received = growth(topic.traffic.received, before?.traffic.received)
    let sent = growth(topic.traffic.sent, before?.traffic.sent)
    let dropped = growth(counter.dropped, before?.dropped)
    guard let seconds, limits.topics > 0, hasPlace(name, activity: received + sent, topic, at: now) else {
      return dropped
    }
    let consumers = topic.consumers
    for (index, measure) in TopicMeasure.allCases.enumerated() {
      let value: Double? =
        switch measure {
        case .received: received / seconds
        case .sent: sent / seconds
        case .lag: Double(topic.lag)
        case .consumerLag: Double(consumers.lag)
        case .consumerAge: consumers.age.map { Double($0) / 1000 }
        case .heldUp: Double(topic.heldUp) / 1000
        case .bytes: Double(topic.summary.bytes)
        case .dropped: dropped / seconds
        }
      if let value { topics[name]?.series[index].add(value, at: now) }
    }
    return dropped
  }

  /// Returns whether the topic has series, or gets them now because there is room or a topic with series is less active.
  private mutating func hasPlace(
    _ name: String, activity: Double, _ topic: TopicSnapshot, at now: Int64
  ) -> Bool {
    if let known = topics[name]?.activity {
      // Halves within about a minute, with one sample per second.
      topics[name]?.activity = known * 0.99 + activity * 0.01
      topics[name]?.seen = now
      topics[name]?.epoch = topic.summary.epoch
      return true
    }
    if topics.count >= limits.topics {
      guard activity > 0, let least = topics.min(by: { $0.value.activity < $1.value.activity }),
        least.value.activity < activity * 0.01
      else { return false }
      topics[least.key] = nil
    }
    topics[name] = TopicHistory(
      epoch: topic.summary.epoch,
      series: TopicMeasure.allCases.map { [resolutions] _ in HistorySeries(resolutions) },
      activity: activity * 0.01, seen: now)
    return true
  }

  /// Removes the counters of topics that no longer exist. A deleted topic keeps its series until another one needs the place, or until they have expired.
  private mutating func forget(_ snapshot: BrokerSnapshot) {
    guard counters.count > snapshot.topics.count else { return }
    let present = Set(snapshot.topics.map(\.summary.topic))
    counters = counters.filter { present.contains($0.key) }
    topics = topics.filter { present.contains($0.key) || $0.value.seen > snapshot.time - limits.length }
  }

  // MARK: Charts

  /// A chart's values.
  struct Chart: Sendable {
    /// Milliseconds between two values.
    var step: Int64
    /// The time of the first value. Values that are no longer kept are left out.
    var start: Int64
    /// The values by measure, each array from the oldest to the newest; nil if there was no sample.
    var values: [(name: String, values: [Float?])]
  }

  /// - Parameters:
  ///   - topic: nil for the broker.
  ///   - range: milliseconds since 1970.
  ///   - step: the longest interval between two values in milliseconds; nil for the finest resolution that contains the start of the range.
  /// - Returns: nil for a topic without series.
  func chart(of topic: String?, in range: Range<Int64>, step: Int64? = nil, now: Int64) -> Chart? {
    let resolution = resolution(for: range, step: step, now: now)
    let (series, names): ([HistorySeries], [String])
    if let topic {
      guard let found = topics[topic] else { return nil }
      (series, names) = (found.series, TopicMeasure.allCases.map(\.rawValue))
    } else {
      (series, names) = (broker, BrokerMeasure.allCases.map(\.rawValue))
    }
    let bucket = resolutions[resolution].bucket
    let parts = series.map { $0.values(resolution, in: range) }
    // A series that began later has fewer values.
    let start = parts.filter { !$0.values.isEmpty }.map(\.start).min() ?? range.lowerBound
    let values = zip(names, parts).map { name, part -> (name: String, values: [Float?]) in
      guard !part.values.isEmpty else { return (name, []) }
      let missing = Int((part.start - start) / bucket)
      return (name, Array(repeating: nil, count: missing) + part.values)
    }
    return Chart(step: bucket, start: start, values: values)
  }

  private func resolution(for range: Range<Int64>, step: Int64?, now: Int64) -> Int {
    if let step { return resolutions.lastIndex { $0.bucket <= step } ?? 0 }
    return resolutions.firstIndex { now - range.lowerBound <= $0.span } ?? resolutions.count - 1
  }
}

/// The limits of the broker's history.
public struct HistoryLimits: Hashable, Sendable {
  /// The most topics with series; 0 for the broker's series alone.
  public var topics = 100
  /// The length of the history in milliseconds; 0 for no history.
  public var length: Int64 = 25 * 3_600_000

  public init() {}
}
