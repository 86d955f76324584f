import SluiceAccess
import SluiceTopics
import SluiceWire

/// The state of a broker at one moment, for operators and for metrics collectors.
///
/// The loops are asked one after another, so the answers of two loops may be a turn apart. Counters only grow while the topic, the connection or
/// the broker exists.
public struct BrokerSnapshot: Sendable {
  /// Milliseconds since 1970; 0 when the broker's loops have ended.
  public var time: Int64 = 0
  /// Milliseconds since the broker has started.
  public var uptime: UInt64 = 0
  /// In order of name. At most as many as were requested; ``topicCount`` counts all.
  public var topics: [TopicSnapshot] = []
  public var topicCount = 0
  /// The connections of clients, in order of number. At most as many as were requested; ``connectionCount`` counts all.
  public var connections: [ConnectionSnapshot] = []
  public var connectionCount = 0
  /// How many connections the filter selects; equal to ``connectionCount`` without a filter.
  public var selectedConnections = 0
  /// The number of clients' connections by protocol.
  public var doors: [DoorName: Int] = [:]
  /// How many connections the broker's own parts have, such as the keeper of MQTT sessions. The other counts don't include them.
  public var ownConnections = 0
  /// In the order of the broker's loops.
  public var loops: [LoopSnapshot] = []
  /// The broker's own counters and gauges.
  public var metrics: [(metric: BrokerMetric, value: Int)] = []
  /// The latency of records from append to the socket of a subscriber with demand, in nanoseconds; sampled.
  public var latency = Histogram()
  /// The duration of commits of durable topics, in nanoseconds.
  public var commits = Histogram()
  /// The store; nil for a broker without durable topics.
  public var storage: StoreSnapshot?
  /// Memory used for clients besides records; nil without a memory ceiling.
  public var kept: KeptSnapshot?

  public init() {}
}

/// The memory that clients make the broker use besides records.
public struct KeptSnapshot: Sendable {
  /// The clients of an identity or address.
  public struct Account: Hashable, Sendable {
    /// A description such as "identity alice".
    public var owner: String
    /// The setting that bounds its share, such as `--max-memory-per-identity`.
    public var setting: String
    public var used: Int
    /// In bytes; 0 for no share of its own.
    public var share: Int

    public init(owner: String, setting: String, used: Int, share: Int) {
      self.owner = owner
      self.setting = setting
      self.used = used
      self.share = share
    }
  }

  public var used: Int
  /// The limit for all clients together.
  public var limit: Int
  /// Whether clients may only open plain subscriptions and publications.
  public var isFull: Bool
  /// The account with the most bytes; nil when all are empty.
  public var largest: Account?
  /// At most 20 of the accounts that have nearly used up their share, those with the most bytes first.
  public var nearlyFull: [Account]

  public init(used: Int, limit: Int, isFull: Bool, largest: Account? = nil, nearlyFull: [Account] = []) {
    self.used = used
    self.limit = limit
    self.isFull = isFull
    self.largest = largest
    self.nearlyFull = nearlyFull
  }
}

extension KeptSnapshot {
  /// Nil without a memory ceiling and without shares.
  init?(_ memory: MemoryWatch, nearlyFull part: Double) {
    let nearlyFull = memory.accounts.full(to: part, atMost: 20)
    guard memory.kept.limit > 0 || !nearlyFull.isEmpty else { return nil }
    self.init(
      used: memory.kept.used, limit: memory.kept.limit, isFull: memory.kept.isFull,
      largest: memory.accounts.largest.map(Account.init), nearlyFull: nearlyFull.map(Account.init))
  }
}

extension KeptSnapshot.Account {
  fileprivate init(_ found: KeptAccounts.Fullness) {
    self.init(
      owner: found.owner.description, setting: found.owner.setting, used: found.used, share: found.share)
  }
}

/// A topic, its attached streams, and its traffic since its creation or the broker's start.
public struct TopicSnapshot: Sendable {
  public var summary: TopicSummary
  public var settings: TopicSettings
  public var traffic = TopicTraffic()
  /// Requested records that its subscribers together haven't received yet; nil when one of them has unlimited demand.
  public var outstanding: UInt64? = 0
  /// Records between the subscriber with the largest lag and the end of the topic.
  public var lag: UInt64 = 0
  /// The longest time that one of its producers has been without demand, in milliseconds; 0 while none waits.
  public var heldUp: UInt64 = 0
  /// How long the topic has been without producers, in milliseconds; 0 while it has some or never had any.
  public var withoutProducers: UInt64 = 0
  /// How far timestamps of its records are ahead of the broker's clock, in milliseconds, after the clock was set back; otherwise 0.
  public var lead: UInt64 = 0
  /// Whether a client has stated the settings.
  public var isStated = false
  /// Records that the topic has lost, as the position of a client has shown within the last hour; nil if no client has shown any.
  public var lost: LostHistory?
  /// The conditions that block all its producers now, or have blocked them in the last five minutes.
  public var holds: [TopicInfo.Hold] = []
  /// At most as many as were requested, those that block producers first; `TopicSummary.subscriptions` counts all.
  public var subscriptions: [SubscriptionSnapshot] = []
  public var publications: [PublicationSnapshot] = []
  /// The records that its retention limits have dropped.
  public var dropped = DroppedRecords()
  /// The durable cursors and groups; empty unless they were requested.
  public var consumers = ConsumerSummary()
  /// Producers that wait for the broker's store. `TopicSummary.publications` includes them.
  public var waitingForStorage = 0

  public init(summary: TopicSummary, settings: TopicSettings) {
    self.summary = summary
    self.settings = settings
  }
}

/// Records that a client of a durable topic has received and the broker's store doesn't contain, because the store went back to an earlier state.
public struct LostHistory: Hashable, Sendable {
  /// The offset of the first lost record.
  public var from: UInt64
  /// The offset after the last lost record.
  public var before: UInt64
  /// How long ago a client's position showed the loss, in milliseconds.
  public var age: UInt64

  public init(from: UInt64, before: UInt64, age: UInt64) {
    self.from = from
    self.before = before
    self.age = age
  }
}

/// A subscription, a member of a group, or a pattern's subscription to one topic.
public struct SubscriptionSnapshot: Sendable {
  public var info: TopicInfo.Subscription
  public var identity: String
  /// Records between its position and the end of the topic.
  public var lag: UInt64
  /// How long its client hasn't read what was sent, so that the broker can't send more, in milliseconds, at least 1; 0 while it reads.
  public var blocked: UInt64
  /// How long records have waited that it hasn't requested, in milliseconds, at least 1; 0 while no records wait. Always 0 for members of groups,
  /// since other members may have demand.
  public var starved: UInt64
  /// The age of the next record for it, in milliseconds; 0 without lag, or if finding it would need a look-up in the store.
  public var age: UInt64
  /// The group that it is a member of; nil for a subscription of its own.
  public var group: String?
  /// The protocol of its client.
  public var door: DoorName

  public init(
    info: TopicInfo.Subscription, identity: String, lag: UInt64, blocked: UInt64 = 0, starved: UInt64 = 0,
    age: UInt64 = 0, group: String? = nil, door: DoorName = .native
  ) {
    self.door = door
    self.info = info
    self.identity = identity
    self.lag = lag
    self.blocked = blocked
    self.starved = starved
    self.age = age
    self.group = group
  }

  public var isMember: Bool { group != nil }
  public var isBlocked: Bool { blocked > 0 }
}

public struct PublicationSnapshot: Sendable {
  public var info: TopicInfo.Publication
  public var identity: String
  /// The protocol of its client; nil for one that waits for the store.
  public var door: DoorName?

  public init(info: TopicInfo.Publication, identity: String, door: DoorName? = nil) {
    self.door = door
    self.info = info
    self.identity = identity
  }
}

public struct ConnectionSnapshot: Sendable {
  public var id: UInt64
  /// The name that the client has chosen.
  public var client: String
  /// Empty without authentication, and before it is complete.
  public var identity: String
  public var peer: String
  /// TLS version and cipher; empty without TLS.
  public var security: String
  /// Milliseconds since the connection was accepted.
  public var age: UInt64
  public var subscriptions: Int
  public var publications: Int
  /// Buffered bytes, in both directions.
  public var buffered: Int
  /// Bytes of frames that were read from it since it was accepted. For clients of a gateway, the frames that the gateway makes of their requests count.
  public var received: Int
  /// Bytes of frames that were written to it.
  public var sent: Int
  /// Topics of its subscriptions, groups and publications, in order of name: at most 10, of its first 64 streams. A subscription to a pattern is listed
  /// as the pattern.
  public var topics: [String]

  public init(
    id: UInt64, client: String, identity: String, peer: String, security: String, age: UInt64,
    subscriptions: Int, publications: Int, buffered: Int, received: Int = 0, sent: Int = 0,
    topics: [String] = []
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
    self.received = received
    self.sent = sent
    self.topics = topics
  }
}

/// One event loop.
public struct LoopSnapshot: Sendable {
  /// The number of clients' connections.
  public var connections: Int
  /// The number of these connections by protocol.
  public var doors: [DoorName: Int] = [:]
  /// How many connections the broker's own parts have.
  public var ownConnections = 0
  /// How long the loop worked between two polls for events, in nanoseconds: an event may have been delayed by that time.
  public var turns: Histogram

  public init(connections: Int, turns: Histogram) {
    self.connections = connections
    self.turns = turns
  }

  /// Turns of 134 ms and more, in which the loop's connections waited.
  public var slowTurns: UInt64 {
    turns.counts.indices.filter { $0 > 0 && Histogram.bound(of: $0 - 1) >= 134_000_000 }
      .reduce(0) { $0 + turns.counts[$1] }
  }
}
