/// TOPIC_INFO: a topic, its settings, and what is attached to it. Answers TOPIC_SHOW and TOPIC_CREATE.
///
/// ```
/// structure summary · settings
/// list of subscriptions: u64 connection · string client · u32 stream · u8 state · u64 next offset · u64 granted · u64 sent · u64 holding
///                        u8 limit · u16 last minute · u16 last five minutes · string consumer · u8 slowness · u64 slow · u64 age
///                        string node
/// list of publications:  u64 connection · string client · u32 stream · u64 granted · u64 received · u64 waiting · u8 reason · string node
/// structure dropped records · structure storage status
/// u8 flags (1: a client has stated the settings) · u64 without producers
/// list of holds:         u8 reason · u64 milliseconds · u16 last minute · u16 last five minutes
/// u32 consumers in all
/// list of consumers:     string name · u8 kind · u64 next offset · u64 lag · u64 bytes · u64 age · u32 members · u64 unacknowledged
///                        u64 redeliveries · u64 dead letters · u64 abandoned · u64 missed · u64 idle · u64 delayed · u64 next retry
/// ```
public struct TopicInfo: LaidOutFrame {
  public static let type = FrameType.topicInfo

  /// A subscription as the broker sees it.
  public struct Subscription: Hashable, Sendable {
    /// Its state. The number is the one on the wire; others may follow.
    public struct State: RawRepresentable, Hashable, Sendable {
      public var rawValue: UInt8

      public init(rawValue: UInt8) {
        self.rawValue = rawValue
      }

      /// The backlog below the offset at which it became live.
      public static let replaying = State(rawValue: 0)
      /// Waiting for records.
      public static let live = State(rawValue: 1)
    }

    /// The broker's number for the connection.
    public var connection: UInt64
    /// The name in the client's HELLO.
    public var client: String
    public var stream: UInt32
    public var state: State
    /// The offset of the next record to be sent.
    public var nextOffset: UInt64
    /// Cumulative demand; all ones is unlimited.
    public var granted: UInt64
    /// Records sent so far; never more than `granted`.
    public var sent: UInt64
    /// Since how many milliseconds its limit has stopped producers, pauses of up to a second included; 0 when it doesn't.
    public var holding: UInt64
    /// The limit that it stops producers with.
    public var limit: HoldLimit
    /// The share of the last minute in which its limit stopped producers, in thousandths.
    public var lastMinute: UInt16
    /// The share of the last five minutes in which its limit stopped producers, in thousandths.
    public var lastFiveMinutes: UInt16
    /// The name of its durable cursor, or of its group; empty for neither.
    public var consumer: String
    /// Why it is behind.
    public var slowness: Slowness
    /// The duration of that state, in milliseconds; 0 if it isn't known.
    public var slow: UInt64
    /// The age of the next record for it, in milliseconds; 0 when it isn't behind, and where the broker has to look the record up in its store.
    public var age: UInt64
    /// The node of the cluster to which the client is connected, whose number the connection's is; empty for the broker that answers.
    public var node: String

    public init(
      connection: UInt64, client: String, stream: UInt32, state: State, nextOffset: UInt64, granted: UInt64,
      sent: UInt64, holding: UInt64 = 0, limit: HoldLimit = .none, lastMinute: UInt16 = 0,
      lastFiveMinutes: UInt16 = 0, consumer: String = "", slowness: Slowness = .none, slow: UInt64 = 0,
      age: UInt64 = 0, node: String = ""
    ) {
      self.connection = connection
      self.client = client
      self.stream = stream
      self.state = state
      self.nextOffset = nextOffset
      self.granted = granted
      self.sent = sent
      self.holding = holding
      self.limit = limit
      self.lastMinute = lastMinute
      self.lastFiveMinutes = lastFiveMinutes
      self.consumer = consumer
      self.slowness = slowness
      self.slow = slow
      self.age = age
      self.node = node
    }

    /// "connection 18", "connection 18 of node b2".
    package var place: String { "connection \(connection)" + (node.isEmpty ? "" : " of node \(node)") }

    static let layout = FrameLayout(
      Self.init, Field.integer("subscription connection", \Self.connection),
      Field.string("subscription client", limit: Limits.name, \Self.client),
      Field.integer("subscription stream", \Self.stream), Field.number("subscription state", \Self.state),
      Field.integer("subscription next offset", \Self.nextOffset),
      Field.integer("subscription granted", \Self.granted), Field.integer("subscription sent", \Self.sent),
      Field.integer("subscription holding", \Self.holding),
      Field.number("subscription hold limit", \Self.limit),
      Field.integer("subscription last minute", \Self.lastMinute),
      Field.integer("subscription last five minutes", \Self.lastFiveMinutes),
      Field.string("subscription consumer", limit: Limits.name, \Self.consumer),
      Field.number("subscription slowness", \Self.slowness),
      Field.integer("subscription slow", \Self.slow), Field.integer("subscription age", \Self.age),
      Field.string("subscription node", limit: Limits.name, \Self.node).added(absent: ""))
  }

  /// A publication as the broker sees it, or a producer that the broker has rejected because of its store.
  public struct Publication: Hashable, Sendable {
    /// Why a producer has no demand. The number is the one on the wire; new numbers may follow.
    public struct WaitReason: RawRepresentable, Hashable, Sendable {
      public var rawValue: UInt8

      public init(rawValue: UInt8) {
        self.rawValue = rawValue
      }

      /// It has demand, or the reason isn't known.
      public static let none = WaitReason(rawValue: 0)
      /// The topic's subscribers have requested nothing more.
      public static let subscribers = WaitReason(rawValue: 1)
      /// The broker's store has no room. The publication was ended, and the client opens another when there is room.
      public static let storageFull = WaitReason(rawValue: 2)
      /// The broker's store reports errors. The publication was ended, as with ``storageFull``.
      public static let storageFailed = WaitReason(rawValue: 3)
      /// Records wait to be written to the disk.
      public static let storageBacklog = WaitReason(rawValue: 4)
      /// The broker's memory is at its ceiling.
      public static let memory = WaitReason(rawValue: 5)
      /// The topic isn't connected.
      public static let notConnected = WaitReason(rawValue: 6)
      /// The identity has published as much as its rate allows.
      public static let rate = WaitReason(rawValue: 7)
    }

    public var connection: UInt64
    public var client: String
    public var stream: UInt32
    /// Cumulative demand that the broker gave.
    public var granted: UInt64
    /// Records received so far.
    public var received: UInt64
    /// For how long it has had no demand, in milliseconds; 0 when it has some.
    public var waiting: UInt64
    /// Why it has no demand.
    public var reason: WaitReason
    /// As that of a subscription.
    public var node: String

    public init(
      connection: UInt64, client: String, stream: UInt32, granted: UInt64, received: UInt64,
      waiting: UInt64 = 0, reason: WaitReason = .none, node: String = ""
    ) {
      self.connection = connection
      self.client = client
      self.stream = stream
      self.granted = granted
      self.received = received
      self.waiting = waiting
      self.reason = reason
      self.node = node
    }

    /// "connection 18", "connection 18 of node b2".
    package var place: String { "connection \(connection)" + (node.isEmpty ? "" : " of node \(node)") }

    static let layout = FrameLayout(
      Self.init, Field.integer("publication connection", \Self.connection),
      Field.string("publication client", limit: Limits.name, \Self.client),
      Field.integer("publication stream", \Self.stream), Field.integer("publication granted", \Self.granted),
      Field.integer("publication received", \Self.received),
      Field.integer("publication waiting", \Self.waiting),
      Field.number("publication wait reason", \Self.reason),
      Field.string("publication node", limit: Limits.name, \Self.node).added(absent: ""))
  }

  public var summary: TopicSummary
  public var settings: TopicSettings
  /// The first of them; `summary.subscriptions` counts all.
  public var subscriptions: [Subscription]
  /// The first of them; `summary.publications` counts all. Producers that wait because the broker's store takes nothing are among them, though their
  /// publications were ended.
  public var publications: [Publication]
  /// Records dropped by the topic's retention limits and trims.
  public var dropped: DroppedRecords
  /// The store that a durable topic is in.
  public var storage: StorageStatus
  /// Whether a client has stated the settings. Otherwise they are the broker's defaults, and a client may state others as long as the topic has had
  /// no record.
  public var isStated: Bool
  /// For how long the topic has been without a producer after its last one left, in milliseconds, at least 1; 0 while it has one, before its
  /// first one, and when it has ended.
  public var withoutProducers: UInt64
  /// The causes that block all producers, or have in the last five minutes, by reason. A cause that blocks one producer alone, such as its identity's
  /// rate, isn't included.
  public var holds: [Hold]
  /// Durable cursors and groups of the topic.
  public var consumerCount: UInt32
  /// The durable cursors and groups that are furthest behind.
  public var consumers: [Consumer]

  public init(
    summary: TopicSummary, settings: TopicSettings, subscriptions: [Subscription],
    publications: [Publication], dropped: DroppedRecords = DroppedRecords(),
    storage: StorageStatus = StorageStatus(), isStated: Bool = false, withoutProducers: UInt64 = 0,
    holds: [Hold] = [], consumerCount: UInt32 = 0, consumers: [Consumer] = []
  ) {
    self.summary = summary
    self.settings = settings
    self.subscriptions = subscriptions
    self.publications = publications
    self.dropped = dropped
    self.storage = storage
    self.isStated = isStated
    self.withoutProducers = withoutProducers
    self.holds = holds
    self.consumerCount = consumerCount
    self.consumers = consumers
  }

  public static let layout = FrameLayout(
    Self.init, Field.structure("topic summary", \Self.summary, TopicSummary.layout),
    Field.settings(\Self.settings, unknown: .ignore),
    Field.list("subscription", \Self.subscriptions, Subscription.layout),
    Field.list("publication", \Self.publications, Publication.layout),
    Field.structure("dropped records", \Self.dropped, DroppedRecords.layout),
    Field.structure("storage status", \Self.storage, StorageStatus.layout),
    Field.flag("TOPIC_INFO flags", mask: 1, \Self.isStated),
    Field.integer("TOPIC_INFO without producers", \Self.withoutProducers),
    Field.list("hold", \Self.holds, Hold.layout),
    Field.integer("TOPIC_INFO consumers", \Self.consumerCount),
    Field.list("consumer", \Self.consumers, Consumer.layout))
}
