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
  /// What the records take, in the broker's memory or on its disk.
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

  func encode(into writer: inout ByteWriter) {
    writer.string(topic)
    writer.integer(epoch)
    writer.integer(firstOffset)
    writer.integer(nextOffset)
    writer.integer(bytes)
    let (state, code, message): (UInt8, UInt32, String) =
      switch ending {
      case nil: (0, 0, "")
      case .finished: (1, 0, "")
      case .failure(let code, let message): (2, code.rawValue, message)
      }
    writer.integer(state)
    writer.integer(code)
    writer.string(message, limit: Limits.message)
    writer.integer(subscriptions)
    writer.integer(publications)
    writer.integer(records)
    writer.integer(UInt8(storage.rawValue))
  }

  init(from reader: inout ByteReader) throws(WireError) {
    topic = try reader.string("topic name")
    epoch = try reader.integer("topic epoch")
    firstOffset = try reader.integer("topic first offset")
    nextOffset = try reader.integer("topic next offset")
    bytes = try reader.integer("topic bytes")
    let state: UInt8 = try reader.integer("topic state")
    let code: UInt32 = try reader.integer("topic code")
    let message = try reader.string("topic message")
    switch state {
    case 0: ending = nil
    case 1: ending = .finished
    case 2: ending = .failure(code: ErrorCode(rawValue: code), message: message)
    default: throw WireError(.malformedFrame, "topic state is \(state); 0 to 2 are defined")
    }
    subscriptions = try reader.integer("topic subscriptions")
    publications = try reader.integer("topic publications")
    records = try reader.integer("topic records")
    // An end that isn't known counts as the longest.
    storage = .init(rawValue: UInt64(try reader.integer("topic storage", as: UInt8.self))) ?? .durable
  }
}
