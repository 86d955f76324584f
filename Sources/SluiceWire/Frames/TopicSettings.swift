/// What a topic was told to be, as it travels in TOPIC_CREATE and TOPIC_INFO.
///
/// ```
/// u8 count · count × (u8 key · u64 value)
/// ```
///
/// A setting that isn't named keeps the default of the broker's configuration; of one that is named twice the last counts. All ones
/// means no limit.
public struct TopicSettings: Hashable, Sendable {
  /// Key 1: the most records that late subscribers can get; 0 keeps none.
  public var replayRecords: UInt64?
  /// Key 2: the most bytes of records, as stored, that late subscribers can get.
  public var replayBytes: UInt64?
  /// Key 3: the greatest age, in milliseconds, of records that late subscribers can get.
  public var replayAge: UInt64?

  public static let unlimited = UInt64.max

  public init(replayRecords: UInt64? = nil, replayBytes: UInt64? = nil, replayAge: UInt64? = nil) {
    self.replayRecords = replayRecords
    self.replayBytes = replayBytes
    self.replayAge = replayAge
  }

  func encode(into writer: inout ByteWriter) {
    let named = [(UInt8(1), replayRecords), (2, replayBytes), (3, replayAge)].filter { $0.1 != nil }
    writer.integer(UInt8(named.count))
    for (key, value) in named {
      writer.integer(key)
      writer.integer(value!)
    }
  }

  /// What to do about a setting that this version doesn't know.
  enum Unknown {
    /// It can't be done: ``ErrorCode/invalidSetting``.
    case refuse
    /// It is only told.
    case ignore
  }

  init(from reader: inout ByteReader, unknown: Unknown) throws(WireError) {
    self.init()
    let count: UInt8 = try reader.integer("topic settings count")
    for _ in 0..<count {
      let key: UInt8 = try reader.integer("topic setting key")
      let value: UInt64 = try reader.integer("topic setting value")
      switch key {
      case 1: replayRecords = value
      case 2: replayBytes = value
      case 3: replayAge = value
      default:
        guard unknown == .ignore else {
          throw WireError(.invalidSetting, "topic setting \(key) isn't known to this version of the broker")
        }
      }
    }
  }
}
