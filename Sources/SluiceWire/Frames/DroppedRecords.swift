/// Records that a topic has dropped, by what has dropped them: a retention limit, or a trim.
///
/// Counted since the broker has started, or since the topic's log began anew. In a topic in memory a record counts as dropped once no late
/// subscriber gets it any more; in a durable topic, once it has left the store, which drops whole batches. As it travels in TOPIC_INFO:
///
/// ```
/// 4 × (u64 records · u64 bytes), in a structure: by the limit of records, of bytes, of age, and by trims
/// ```
public struct DroppedRecords: Hashable, Sendable {
  /// The cause of dropped records: a retention limit, or a trim.
  public enum Cause: Int, Hashable, Sendable, CaseIterable {
    case records
    case bytes
    case age
    /// A client with the permission has trimmed the topic.
    case trim
  }

  public struct Amount: Hashable, Sendable {
    public var records: UInt64
    /// Bytes of these records, each counted with its length word.
    public var bytes: UInt64

    public init(records: UInt64 = 0, bytes: UInt64 = 0) {
      self.records = records
      self.bytes = bytes
    }

    static let layout = FrameLayout(
      Self.init, Field.integer("records dropped", \Self.records), Field.integer("bytes dropped", \Self.bytes))

    public mutating func add(_ other: Amount) {
      records &+= other.records
      bytes &+= other.bytes
    }
  }

  private var byRecords = Amount()
  private var byBytes = Amount()
  private var byAge = Amount()
  private var byTrim = Amount()

  /// Nothing was dropped.
  public init() {}

  private init(_ amounts: (Amount, Amount, Amount, Amount)) {
    (byRecords, byBytes, byAge, byTrim) = amounts
  }

  /// Records dropped by one limit, or by trims.
  public subscript(cause: Cause) -> Amount {
    get {
      switch cause {
      case .records: byRecords
      case .bytes: byBytes
      case .age: byAge
      case .trim: byTrim
      }
    }
    set {
      switch cause {
      case .records: byRecords = newValue
      case .bytes: byBytes = newValue
      case .age: byAge = newValue
      case .trim: byTrim = newValue
      }
    }
  }

  /// Records dropped by all limits and trims together.
  public var total: Amount {
    Cause.allCases.reduce(into: Amount()) { $0.add(self[$1]) }
  }

  public mutating func add(_ other: DroppedRecords) {
    for cause in Cause.allCases { self[cause].add(other[cause]) }
  }

  static let layout = FrameLayout(
    { Self(($0, $1, $2, $3)) }, Field.part(\Self.byRecords, Amount.layout),
    Field.part(\Self.byBytes, Amount.layout), Field.part(\Self.byAge, Amount.layout),
    Field.part(\Self.byTrim, Amount.layout))
}
