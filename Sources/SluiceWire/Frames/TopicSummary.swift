/// One topic in a few numbers, as it travels in TOPIC_INFO and TOPICS.
///
/// ```
/// string topic · u64 epoch · u64 first offset · u64 next offset · u64 bytes · u8 state (0 open, 1 finished, 2 failed)
/// u32 code · string message · u32 subscriptions · u32 publications · u64 records · u8 storage (0 memory, 1 durable)
/// ```
public struct TopicSummary: Hashable, Sendable {
  public var topic: String
  public var epoch: UInt64
  /// The oldest record that a subscriber can get.
  public var firstOffset: UInt64
  /// The offset that the next record will get.
  public var nextOffset: UInt64
  /// The size of the records, in the broker's memory or on its disk.
  public var bytes: UInt64
  /// The terminal event, once there is one.
  public var ending: Complete.Ending?
  public var subscriptions: UInt32
  public var publications: UInt32
  /// How many records a late subscriber can get: fewer than there are offsets from the first to the next where only the newest of each key are
  /// kept.
  public var records: UInt64
  /// Whether the topic outlives the broker's process.
  public var storage: TopicSettings.Storage

  /// A summary in which `records` is nil has as many as there are offsets from the first to the next.
  public init(
    topic: String, epoch: UInt64, firstOffset: UInt64, nextOffset: UInt64, bytes: UInt64,
    ending: Complete.Ending?, subscriptions: UInt32, publications: UInt32, records: UInt64? = nil,
    storage: TopicSettings.Storage = .memory
  ) {
    self.topic = topic
    self.epoch = epoch
    self.firstOffset = firstOffset
    self.nextOffset = nextOffset
    self.bytes = bytes
    self.ending = ending
    self.subscriptions = subscriptions
    self.publications = publications
    self.records = records ?? (nextOffset &- firstOffset)
    self.storage = storage
  }

  static let layout = FrameLayout(
    {
      Self(
        topic: $0, epoch: $1, firstOffset: $2, nextOffset: $3, bytes: $4, ending: $5, subscriptions: $6,
        publications: $7, records: $8, storage: $9)
    },
    Field.string("topic name", \Self.topic), Field.integer("topic epoch", \Self.epoch),
    Field.integer("topic first offset", \Self.firstOffset),
    Field.integer("topic next offset", \Self.nextOffset), Field.integer("topic bytes", \Self.bytes),
    Field.part(\Self.ending, endingLayout), Field.integer("topic subscriptions", \Self.subscriptions),
    Field.integer("topic publications", \Self.publications), Field.integer("topic records", \Self.records),
    Field.part(\Self.storage, storageLayout))

  private static let endingLayout = FrameLayout<Complete.Ending?>(
    { $0 == 0 ? nil : Complete.Ending(kind: $0 - 1, code: $1, message: $2) },
    Field.integer("topic state") { $0.map { $0.kind + 1 } ?? 0 as UInt8 }.refused {
      $0 < 3 ? nil : WireError(.malformedFrame, "topic state is \($0); 0 to 2 are defined")
    }, Field.number("topic code") { $0?.code ?? ErrorCode(0) },
    Field.string("topic message", limit: Limits.message) { $0?.message ?? "" })

  // An end that isn't known counts as the longest.
  private static let storageLayout = FrameLayout<TopicSettings.Storage>(
    { .init(rawValue: UInt64($0)) ?? .durable }, Field.integer("topic storage") { UInt8($0.rawValue) })
}
