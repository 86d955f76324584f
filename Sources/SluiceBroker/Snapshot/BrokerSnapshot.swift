import SluiceAccess
import SluiceWire

/// A broker as it is at one moment, for people and for what collects its numbers.
///
/// The loops are asked one after another, so what two of them say may be a turn apart. Counters only ever grow, for as long as the
/// topic, the connection or the broker epochs.
public struct BrokerSnapshot: Sendable {
  /// Milliseconds since 1970; 0 when the broker's loops have ended.
  public var time: Int64 = 0
  /// Milliseconds since the broker has started.
  public var uptime: UInt64 = 0
  /// By name. At most as many as were asked for; ``topicCount`` counts all.
  public var topics: [TopicSnapshot] = []
  public var topicCount = 0
  /// By number. At most as many as were asked for; ``connectionCount`` counts all.
  public var connections: [ConnectionSnapshot] = []
  public var connectionCount = 0
  /// In the order of the broker's loops.
  public var loops: [LoopSnapshot] = []
  /// The broker's own counters and gauges.
  public var metrics: [(metric: BrokerMetric, value: Int)] = []
  /// How long records took from being appended to being handed to the socket of somebody who had asked for them, in nanoseconds; sampled.
  public var latency = Histogram()
  /// How long it took to bring what there was of durable topics to disk, in nanoseconds.
  public var commits = Histogram()
  /// The store; nil for a broker without durable topics.
  public var storage: StoreSnapshot?

  public init() {}
}

/// One topic, who is attached to it, and what has gone through it since it was made or the broker has started.
public struct TopicSnapshot: Sendable {
  public var summary: TopicSummary
  public var settings: TopicSettings
  public var traffic = TopicTraffic()
  /// Records that its subscribers have asked for and not got, together; nil when one of them asks for any number.
  public var outstanding: UInt64? = 0
  /// Records between the subscriber that is furthest behind and the end of the topic.
  public var lag: UInt64 = 0
  /// The longest that one of its producers has been without demand, in milliseconds; 0 while none waits.
  public var heldUp: UInt64 = 0
  /// For how long the topic has lost its producers, in milliseconds; 0 while it hasn't.
  public var withoutProducers: UInt64 = 0
  /// Whether a client has stated the settings.
  public var isStated = false
  /// What stops all its producers, or has in the last five minutes.
  public var holds: [TopicInfo.Hold] = []
  /// At most as many as were asked for, those that hold up producers first; ``TopicSummary/subscriptions`` counts all.
  public var subscriptions: [SubscriptionSnapshot] = []
  public var publications: [PublicationSnapshot] = []
  /// What its retention limits have dropped.
  public var dropped = DroppedRecords()
  /// Publishers that wait for the broker's store, and aren't counted in ``TopicSummary/publications``.
  public var waitingForStorage = 0

  public init(summary: TopicSummary, settings: TopicSettings) {
    self.summary = summary
    self.settings = settings
  }
}

/// What has gone through a topic, counted from when it was made or restored. Counters: they survive whoever caused them.
public struct TopicTraffic: Hashable, Sendable {
  /// Records that producers were granted, and records and bytes that they have published. What groups have put here of what they couldn't
  /// get done is among them.
  public var granted: UInt64 = 0
  public var received: UInt64 = 0
  public var receivedBytes: UInt64 = 0
  /// Records that were acknowledged to producers.
  public var acknowledged: UInt64 = 0
  /// Records that subscribers have asked for, those of unlimited demand (2^53 and more) not among them; of a demand that a pattern's topics share, what was
  /// used here. Records and bytes that they were sent, time marks among these.
  public var requested: UInt64 = 0
  public var sent: UInt64 = 0
  public var sentBytes: UInt64 = 0
  /// Records that subscribers have missed because they were dropped before they were asked for.
  public var missed: UInt64 = 0
  /// Records, and their bytes, that the topic's retention limits have dropped.
  public var dropped: UInt64 = 0
  public var droppedBytes: UInt64 = 0
  /// How long subscribers had no demand while there were records for them, in milliseconds, added up over subscribers. Members of groups
  /// don't count: others may have demand.
  public var starved: UInt64 = 0
  /// How long producers had no demand, in milliseconds, added up over producers.
  public var heldUp: UInt64 = 0

  public init() {}
}

/// A subscription, a member of a group, or what a pattern has of a topic.
public struct SubscriptionSnapshot: Sendable {
  public var info: TopicInfo.Subscription
  public var identity: String
  /// Records between it and the end of the topic.
  public var lag: UInt64
  /// Why its connection can't be sent more at the moment: what was sent isn't read.
  public var isBlocked: Bool

  public init(info: TopicInfo.Subscription, identity: String, lag: UInt64, isBlocked: Bool) {
    self.info = info
    self.identity = identity
    self.lag = lag
    self.isBlocked = isBlocked
  }
}

public struct PublicationSnapshot: Sendable {
  public var info: TopicInfo.Publication
  public var identity: String

  public init(info: TopicInfo.Publication, identity: String) {
    self.info = info
    self.identity = identity
  }
}

public struct ConnectionSnapshot: Sendable {
  public var id: UInt64
  /// What the client calls itself.
  public var client: String
  /// Empty where nobody is asked, or before that is known.
  public var identity: String
  public var peer: String
  /// TLS version and cipher; empty without TLS.
  public var security: String
  /// Milliseconds since it was accepted.
  public var age: UInt64
  public var subscriptions: Int
  public var publications: Int
  /// Bytes that wait here, in either direction.
  public var buffered: Int

  public init(
    id: UInt64, client: String, identity: String, peer: String, security: String, age: UInt64,
    subscriptions: Int, publications: Int, buffered: Int
  ) {
    self.id = id
    self.client = client
    self.identity = identity
    self.peer = peer
    self.security = security
    self.age = age
    self.subscriptions = subscriptions
    self.publications = publications
    self.buffered = buffered
  }
}

/// One event loop.
public struct LoopSnapshot: Sendable {
  public var connections: Int
  /// How long it worked from one look at its events to the next, in nanoseconds: what an event may have had to wait.
  public var turns: Histogram

  public init(connections: Int, turns: Histogram) {
    self.connections = connections
    self.turns = turns
  }
}

/// How often which durations occurred, by powers of two.
public struct Histogram: Hashable, Sendable {
  /// `counts[n]` counts durations below ``bound(of:)`` of n and not below that of n - 1; the last one all that are longer.
  public private(set) var counts = [UInt64](repeating: 0, count: Self.buckets)
  /// Of all durations, in nanoseconds.
  public private(set) var sum: UInt64 = 0

  /// From 1 µs to some 9 minutes.
  public static let buckets = 30

  public init() {}

  public var count: UInt64 { counts.reduce(0, &+) }

  /// Nanoseconds; all ones for the last bucket.
  public static func bound(of bucket: Int) -> UInt64 { bucket >= buckets - 1 ? .max : 1024 << UInt64(bucket) }

  public mutating func add(_ nanoseconds: UInt64) {
    let bucket = nanoseconds < 1024 ? 0 : min(64 - nanoseconds.leadingZeroBitCount - 10, Self.buckets - 1)
    counts[bucket] &+= 1
    sum &+= nanoseconds
  }

  public mutating func add(_ other: Histogram) {
    for bucket in counts.indices { counts[bucket] &+= other.counts[bucket] }
    sum &+= other.sum
  }

  /// The bound under which `share` (0...1) of the durations are, in nanoseconds; 0 where there are none.
  public func quantile(_ share: Double) -> UInt64 {
    let wanted = (Double(count) * share).rounded(.up)
    var seen: UInt64 = 0
    for bucket in counts.indices {
      seen &+= counts[bucket]
      if seen > 0, Double(seen) >= wanted { return Self.bound(of: bucket) }
    }
    return 0
  }
}
