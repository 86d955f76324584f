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
  /// Those of clients, in order of number. At most as many as were requested; ``connectionCount`` counts all.
  public var connections: [ConnectionSnapshot] = []
  public var connectionCount = 0
  /// How many connections the filter selects; as ``connectionCount`` without one.
  public var selectedConnections = 0
  /// How many of all connections came by each door.
  public var doors: [DoorName: Int] = [:]
  /// How many connections the broker's own parts have, such as the one that keeps sessions of MQTT. None of the others counts them.
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
  /// What is kept for clients besides records; nil without a memory ceiling.
  public var kept: KeptSnapshot?

  public init() {}
}

/// The memory that clients make the broker use besides records.
public struct KeptSnapshot: Sendable {
  /// The clients of an identity or address.
  public struct Account: Hashable, Sendable {
    /// As in "identity alice".
    public var owner: String
    /// The setting that bounds its share, as `--max-memory-per-identity`.
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
  /// The part of the memory for all clients together.
  public var limit: Int
  /// Whether clients are refused all but plain subscriptions and publications.
  public var isFull: Bool
  /// The one with the most bytes; nil when none has any.
  public var largest: Account?
  /// At most 20 of those that have nearly used up their share, those with the most bytes first.
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

/// A topic, its attached streams, and its traffic since it was made or the broker started.
public struct TopicSnapshot: Sendable {
  public var summary: TopicSummary
  public var settings: TopicSettings
  public var traffic = TopicTraffic()
  /// Records that its subscribers together have requested and not received; nil when one has unlimited demand.
  public var outstanding: UInt64? = 0
  /// Records between the subscriber with the largest lag and the end of the topic.
  public var lag: UInt64 = 0
  /// The longest time that one of its producers has been without demand, in milliseconds; 0 while none waits.
  public var heldUp: UInt64 = 0
  /// For how long the topic has been without producers, in milliseconds; 0 while it has some or never had any.
  public var withoutProducers: UInt64 = 0
  /// By how many milliseconds times of its records are ahead of the broker's clock, because the clock was set back; 0 while they aren't.
  public var lead: UInt64 = 0
  /// Whether a client has stated the settings.
  public var isStated = false
  /// Records that a client knows and the topic has lost, as a client showed within the last hour; nil when none did.
  public var lost: LostHistory?
  /// What stops all its producers now, or has stopped them in the last five minutes.
  public var holds: [TopicInfo.Hold] = []
  /// At most as many as were requested, those that hold up producers first; `TopicSummary.subscriptions` counts all.
  public var subscriptions: [SubscriptionSnapshot] = []
  public var publications: [PublicationSnapshot] = []
  /// The records that its retention limits have dropped.
  public var dropped = DroppedRecords()
  /// The durable cursors and groups; empty unless they were requested.
  public var consumers = ConsumerSummary()
  /// Producers that wait for the broker's store. `TopicSummary.publications` counts them, too.
  public var waitingForStorage = 0

  public init(summary: TopicSummary, settings: TopicSettings) {
    self.summary = summary
    self.settings = settings
  }
}

/// Records that a client of a durable topic knows and the broker's store doesn't have: the store went back.
public struct LostHistory: Hashable, Sendable {
  /// The offset of the first.
  public var from: UInt64
  /// The offset behind the last.
  public var before: UInt64
  /// How long ago the client showed it, in milliseconds.
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
  /// For how long its client hasn't read what was sent, so that nothing more can be sent, in milliseconds, at least 1; 0 while it reads.
  public var blocked: UInt64
  /// For how long records have waited for it that it hasn't requested, in milliseconds, at least 1; 0 while there are none. Members of groups have 0: other
  /// members may have demand.
  public var starved: UInt64
  /// The age of the next record for it, in milliseconds; 0 without lag, and where the broker has to look it up in its store.
  public var age: UInt64
  /// The group that it is a member of; nil for a subscription of its own.
  public var group: String?
  /// What its client comes by.
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
  /// What its client comes by; nil for one that waits for the store.
  public var door: DoorName?

  public init(info: TopicInfo.Publication, identity: String, door: DoorName? = nil) {
    self.door = door
    self.info = info
    self.identity = identity
  }
}

public struct ConnectionSnapshot: Sendable {
  public var id: UInt64
  /// The name that the client has given itself.
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
  /// Bytes of frames that were read from it since it was accepted. What comes by a door counts as the frames that the door makes of it.
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
  /// Those of clients.
  public var connections: Int
  /// How many of them came by each door.
  public var doors: [DoorName: Int] = [:]
  /// How many connections the broker's own parts have.
  public var ownConnections = 0
  /// How long the loop worked between two polls for events, in nanoseconds: the delay that an event may have had.
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
