/// LEND: the demand of a node of a cluster on a subscription to a pattern at another node, which serves some of the pattern's topics. The subscriber's
/// demand is for the topics of all nodes together, so that its node lends each of the others a part, and takes back what isn't used.
///
/// The totals count from the beginning of the stream. The largest ``grantedThrough`` counts, and the last ``pacedThrough``.
///
/// ```
/// u64 granted through · u64 paced through · u8 recall · 7 bytes 0
/// ```
public struct Lend: LaidOutFrame {
  public static let type = FrameType.lend

  /// Records that may be sent in all, those included that were given back.
  public var grantedThrough: UInt64
  /// The same, if all of the subscriber's demand were for this node's topics: as far as producers may go that follow their subscribers.
  public var pacedThrough: UInt64
  /// Whether the receiver gives back what it hasn't used, by ``Offer``.
  public var recalls: Bool

  public init(grantedThrough: UInt64, pacedThrough: UInt64, recalls: Bool = false) {
    self.grantedThrough = grantedThrough
    self.pacedThrough = pacedThrough
    self.recalls = recalls
  }

  public static let layout = FrameLayout(
    Self.init, Field.integer("LEND granted through", \Self.grantedThrough),
    Field.integer("LEND paced through", \Self.pacedThrough),
    Field.flag("LEND recall", \Self.recalls).padded(reserved: ("LEND reserved", 7)))
}

/// OFFER: how a node stands with what it was lent by ``Lend``. Sent when records wait and nothing is left of the loan, once until there is more; when a
/// topic's producers follow their subscribers, once; and in answer to a recall.
///
/// ```
/// u64 returned · u8 waits · u8 paced · 6 bytes 0
/// ```
public struct Offer: LaidOutFrame {
  public static let type = FrameType.offer

  /// Of what was lent, the records that the node has given back instead of sending them, in all.
  public var returned: UInt64
  /// Whether records wait.
  public var waits: Bool
  /// Whether there is a topic whose producers follow their subscribers, so that ``Lend/pacedThrough`` matters.
  public var isPaced: Bool

  public init(returned: UInt64, waits: Bool, isPaced: Bool) {
    self.returned = returned
    self.waits = waits
    self.isPaced = isPaced
  }

  public static let layout = FrameLayout(
    Self.init, Field.integer("OFFER returned", \Self.returned), Field.flag("OFFER waits", \Self.waits),
    Field.flag("OFFER paced", \Self.isPaced).padded(reserved: ("OFFER reserved", 6)))
}
