import SluiceIO
import SluiceWire

/// What is found of a topic: on one loop, and then on all of them.
struct TopicFindings: Sendable {
  /// A subscription, of which it isn't known yet whether it holds up producers.
  struct Subscription: Sendable {
    var shown: Consumer.Shown
    var identity: String
    var lag: UInt64
    var isBlocked: Bool
  }

  var traffic = TrafficCount()
  private var outstanding: UInt64? = 0
  private var lag: UInt64 = 0
  private(set) var holders = ProducerHolders()
  var subscriptions: [Subscription] = []
  var publications: [PublicationSnapshot] = []

  init(traffic: TrafficCount) {
    self.traffic = traffic
  }

  mutating func add(_ other: TopicFindings) {
    traffic.add(other.traffic)
    add(outstanding: other.outstanding)
    lag = max(lag, other.lag)
    holders.add(other.holders)
    subscriptions += other.subscriptions
    publications += other.publications
  }

  mutating func add(_ publication: Publication, at now: MonotonicTime) {
    traffic.heldUp(since: publication.heldUpSince, until: now)
    holders.add(waiting: publication.waiting)
  }

  mutating func add(_ standing: Consumer.Standing, at now: MonotonicTime) {
    traffic.starved(since: standing.starvedSince, until: now)
    add(outstanding: standing.available == Credit.unlimited ? nil : standing.available)
    lag = max(lag, standing.lag)
    if standing.mayHold {
      holders.add(askedThrough: standing.askedThrough, nextOffset: standing.nextOffset)
    }
  }

  private mutating func add(outstanding more: UInt64?) {
    guard let sum = outstanding, let more else { return outstanding = nil }
    outstanding = sum.addingReportingOverflow(more).overflow ? .max : sum + more
  }

  /// - Parameter request: how many of each are to be listed.
  func show(in topic: inout TopicSnapshot, _ request: SnapshotRequest) {
    topic.traffic = traffic.shown
    topic.outstanding = outstanding
    topic.lag = lag
    topic.heldUp = holders.waiting
    let subscriptions = subscriptions.map {
      SubscriptionSnapshot(
        info: holders.judge($0.shown), identity: $0.identity, lag: $0.lag, isBlocked: $0.isBlocked)
    }
    topic.subscriptions = Array(
      subscriptions.sorted { TopicInfo.Subscription.precedes($0.info, $1.info) }
        .prefix(max(request.subscriptionsPerTopic, 0)))
    topic.publications = Array(
      publications.sorted { Self.precedes($0.info, $1.info) }.prefix(max(request.publicationsPerTopic, 0)))
  }

  /// Those that wait come first.
  private static func precedes(_ left: TopicInfo.Publication, _ right: TopicInfo.Publication) -> Bool {
    (left.waiting == 0 ? 1 : 0, left.connection, left.stream)
      < (right.waiting == 0 ? 1 : 0, right.connection, right.stream)
  }
}

/// What one loop has found.
struct LoopFindings: Sendable {
  var topics: [(subject: Int, found: TopicFindings)] = []
  var connections: [ConnectionSnapshot] = []
  var loop = LoopSnapshot(connections: 0, turns: Histogram())
  var latency = Histogram()
  var time: Int64 = 0
  var uptime: UInt64 = 0
}
