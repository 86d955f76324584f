/// What a log keeps for late subscribers: every limit that is set must be met.
///
/// A late subscriber gets exactly the newest records that all the limits allow. Memory is given back by whole
/// segments, so a log may hold somewhat more than that; see ``TopicLog`` for the readers that can still read it.
public struct Retention: Hashable, Sendable {
  /// The most records; nil for no limit.
  public var records: UInt64?

  /// The most bytes, counting each record's item as it travels, with its length word (time marks aren't counted); nil
  /// for no limit. A newest record that is larger than this alone is not kept.
  public var bytes: UInt64?

  /// The greatest age of a record, in milliseconds: one that is exactly this old is kept. Nil for no limit; a negative
  /// age counts as 0.
  public var ageMilliseconds: Int64?

  public init(records: UInt64? = nil, bytes: UInt64? = nil, ageMilliseconds: Int64? = nil) {
    self.records = records
    self.bytes = bytes
    self.ageMilliseconds = ageMilliseconds
  }

  /// No limits.
  public static var everything: Self { Self() }

  /// Nothing for late subscribers.
  public static var none: Self { Self(records: 0) }
}
