/// The condition of the broker's store, as it travels in TOPIC_INFO.
///
/// ```
/// u8 state · u64 since · u64 used · u64 limit
/// ```
public struct StorageStatus: Hashable, Sendable {
  /// The store's treatment of records. The number is the one on the wire; new numbers may follow.
  public struct State: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt8

    public init(rawValue: UInt8) {
      self.rawValue = rawValue
    }

    /// The broker has no store, or the topic isn't in it.
    public static let none = State(rawValue: 0)
    /// The store takes records.
    public static let working = State(rawValue: 1)
    /// The store, or its disk, has no room: publishers wait.
    public static let full = State(rawValue: 2)
    /// The disk reports errors: publishers wait.
    public static let failing = State(rawValue: 3)
  }

  public var state: State
  /// For how long the store has been full or failing, in milliseconds; 0 otherwise.
  public var since: UInt64
  /// Bytes of the store that are in use, of all topics.
  public var used: UInt64
  /// Bytes that the store may take; all ones is no limit.
  public var limit: UInt64

  public init(state: State = .none, since: UInt64 = 0, used: UInt64 = 0, limit: UInt64 = .max) {
    self.state = state
    self.since = since
    self.used = used
    self.limit = limit
  }

  /// The share of the limit that is in use, from 0 to 1; nil without a limit.
  public var fullness: Double? {
    limit == .max || limit == 0 ? nil : min(Double(used) / Double(limit), 1)
  }

  /// ``fullness`` in full percents, so that 100 means full; nil without a limit.
  public var percent: Int? { fullness.map { Int($0 * 100) } }

  static let layout = FrameLayout(
    Self.init, Field.number("storage state", \Self.state), Field.integer("storage since", \Self.since),
    Field.integer("storage used", \Self.used), Field.integer("storage limit", \Self.limit))
}
