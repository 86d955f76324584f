/// FLOOR: nothing before this offset may be delivered any more, to subscribers that have not been sent it. Between nodes of a cluster, on a subscription that is
/// shareable: a trim of the topic also drops the records that the subscribing node keeps for its clients.
///
/// ```
/// u64 floor
/// ```
///
/// A node that doesn't know it skips it.
public struct Floor: LaidOutFrame {
  public static let type = FrameType.floor

  /// The lowest offset that a subscription can get which continues.
  public var floor: UInt64

  public init(floor: UInt64) {
    self.floor = floor
  }

  public static let layout = FrameLayout(Self.init, Field.integer("FLOOR floor", \Self.floor))
}
