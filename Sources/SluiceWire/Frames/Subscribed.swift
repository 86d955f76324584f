/// SUBSCRIBED: the subscription stands. Comes before anything else on its stream.
///
/// ```
/// u64 epoch · u64 next offset · u64 live offset · u8 gaps · u8 continues · u8 shareable · u8 0
/// ```
public struct Subscribed: LaidOutFrame {
  public static let type = FrameType.subscribed

  /// The topic's current epoch.
  public var epoch: UInt64
  /// The offset of the first record that will be delivered.
  public var nextOffset: UInt64
  /// The end of the topic at this moment: records from here on are live.
  public var liveOffset: UInt64
  /// Whether offsets may leave gaps that are no losses: records that a filter keeps back, or that newer ones have replaced, or that
  /// are with other members of a group. Otherwise only a ``Lag`` may.
  public var gaps: Bool
  /// The epoch that the subscriber named is one that this one continues: the broker lost the end of it, and up to ``nextOffset`` both have the
  /// same records.
  public var continues: Bool
  /// For another node of the broker's cluster: it may read the topic's new records once for several of its clients. The broker ends the subscription with
  /// ``ErrorCode/topicMoved`` when that changes.
  public var isShareable: Bool

  public init(
    epoch: UInt64, nextOffset: UInt64, liveOffset: UInt64, gaps: Bool = false, continues: Bool = false,
    isShareable: Bool = false
  ) {
    self.isShareable = isShareable
    self.epoch = epoch
    self.nextOffset = nextOffset
    self.liveOffset = liveOffset
    self.gaps = gaps
    self.continues = continues
  }

  public static let layout = FrameLayout(
    Self.init, Field.integer("SUBSCRIBED epoch", \Self.epoch),
    Field.integer("SUBSCRIBED next offset", \Self.nextOffset),
    Field.integer("SUBSCRIBED live offset", \Self.liveOffset), Field.flag("SUBSCRIBED gaps", \Self.gaps),
    Field.flag("SUBSCRIBED continues", \Self.continues),
    Field.flag("SUBSCRIBED shareable", \Self.isShareable).padded(reserved: ("SUBSCRIBED reserved", 1)))
}
