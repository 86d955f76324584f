/// Records that a topic's retention limits have dropped, by the limit that dropped them.
///
/// Counted since the broker has started, or since the topic's log began anew. As it travels in TOPIC_INFO:
///
/// ```
/// 3 × (u64 records · u64 bytes), in a structure: by the limit of records, of bytes, of age
/// ```
public struct DroppedRecords: Hashable, Sendable {
  /// A retention limit.
  public enum Limit: Int, Hashable, Sendable, CaseIterable {
    case records
    case bytes
    case age
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

  /// Nothing was dropped.
  public init() {}

  private init(_ amounts: (Amount, Amount, Amount)) { (byRecords, byBytes, byAge) = amounts }

  /// What one limit has dropped.
  public subscript(limit: Limit) -> Amount {
    get {
      switch limit {
      case .records: byRecords
      case .bytes: byBytes
      case .age: byAge
      }
    }
    set {
      switch limit {
      case .records: byRecords = newValue
      case .bytes: byBytes = newValue
      case .age: byAge = newValue
      }
    }
  }

  /// What all limits have dropped together.
  public var total: Amount {
    Amount(
      records: byRecords.records &+ byBytes.records &+ byAge.records,
      bytes: byRecords.bytes &+ byBytes.bytes &+ byAge.bytes)
  }

  public mutating func add(_ other: DroppedRecords) {
    for limit in Limit.allCases { self[limit].add(other[limit]) }
  }

  static let layout = FrameLayout(
    { Self(($0, $1, $2)) }, Field.part(\Self.byRecords, Amount.layout),
    Field.part(\Self.byBytes, Amount.layout), Field.part(\Self.byAge, Amount.layout))
}
