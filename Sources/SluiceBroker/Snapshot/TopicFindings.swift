import SluiceIO
import SluiceTopics
import SluiceWire

/// The findings for a topic: first of one loop, then the sum of all.
struct TopicFindings: Sendable {
  var traffic = TrafficCount()
  private var outstanding: UInt64? = 0
  private var lag: UInt64 = 0
  /// The longest time that a producer has had no demand, in milliseconds.
  private var waiting: UInt64 = 0
  var subscriptions: [SubscriptionSnapshot] = []
  var publications: [PublicationSnapshot] = []

  init(traffic: TrafficCount) {
    self.traffic = traffic
  }

  mutating func add(_ other: TopicFindings) {
    traffic.add(other.traffic)
    add(outstanding: other.outstanding)
    lag = max(lag, other.lag)
    waiting = max(waiting, other.waiting)
    subscriptions += other.subscriptions
    publications += other.publications
  }

  mutating func add(_ publication: any TopicPublisher, at now: MonotonicTime) {
    traffic.heldUp(since: publication.heldUpSince, until: now)
    waiting = max(waiting, publication.waiting)
  }

  mutating func add(_ standing: SubscriberStanding, at now: MonotonicTime) {
    traffic.starved(since: standing.starvedSince, until: now)
    add(outstanding: standing.available == Credit.unlimited ? nil : standing.available)
    lag = max(lag, standing.lag)
  }

  private mutating func add(outstanding more: UInt64?) {
    guard let sum = outstanding, let more else { return outstanding = nil }
    outstanding = sum.addingReportingOverflow(more).overflow ? .max : sum + more
  }

  /// - Parameter request: limits the subscriptions and publications to list.
  func show(in topic: inout TopicSnapshot, _ request: SnapshotRequest) {
    topic.traffic = traffic.shown
    topic.outstanding = outstanding
    topic.lag = lag
    topic.heldUp = waiting
    topic.subscriptions = Array(
      subscriptions.sorted(by: Self.precedes)
        .prefix(max(request.subscriptionsPerTopic, 0)))
    topic.publications = Array(
      publications.sorted { Self.precedes($0.info, $1.info) }.prefix(max(request.publicationsPerTopic, 0)))
  }

  /// Orders subscriptions that block producers first, then those with the largest lag.
  private static func precedes(_ left: SubscriptionSnapshot, _ right: SubscriptionSnapshot) -> Bool {
    if (left.info.holding == 0) != (right.info.holding == 0) { return left.info.holding > 0 }
    if left.lag != right.lag { return left.lag > right.lag }
    return (left.info.connection, left.info.stream) < (right.info.connection, right.info.stream)
  }

  /// Orders publications that wait for demand first.
  private static func precedes(_ left: TopicInfo.Publication, _ right: TopicInfo.Publication) -> Bool {
    (left.waiting == 0 ? 1 : 0, left.connection, left.stream)
      < (right.waiting == 0 ? 1 : 0, right.connection, right.stream)
  }
}

/// The findings of one loop.
struct LoopFindings: Sendable {
  var topics: [(subject: Int, found: TopicFindings)] = []
  var connections: [ConnectionSnapshot] = []
  /// How many connections the filter selects.
  var selectedConnections = 0
  var loop = LoopSnapshot(connections: 0, turns: Histogram())
  var latency = Histogram()
  var time: Int64 = 0
  var uptime: UInt64 = 0
}
