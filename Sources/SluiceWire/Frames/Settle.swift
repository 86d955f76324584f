/// SETTLE: what became of records that a member of a group got. For a group with ``JoinGroup/Acknowledgement/explicit``.
///
/// ```
/// u8 verdict · 3 × u8 0 · u32 delivery · u64 first offset · u32 count
/// ```
///
/// It may be about any delivery to the group, also one on an earlier connection. Records that are with another member by now, or done with, are
/// passed over.
public struct Settle: LaidOutFrame {
  public static let type = FrameType.settle

  /// The number is the one on the wire.
  public enum Verdict: UInt8, Hashable, Sendable, CaseIterable {
    /// They are done.
    case done = 0
    /// They should be delivered again, to any member.
    case again = 1
    /// They can't be done: they go to the group's dead letters at once.
    case dead = 2
    /// They are being worked on: their deadline begins anew.
    case working = 3
  }

  public var verdict: Verdict
  /// For which time they were delivered: see ``Deliveries``.
  public var delivery: UInt32
  public var firstOffset: UInt64
  /// How many, with offsets that follow one by one. 0 is allowed.
  public var count: UInt32

  public init(_ verdict: Verdict, delivery: UInt32, firstOffset: UInt64, count: UInt32) {
    self.verdict = verdict
    self.delivery = delivery
    self.firstOffset = firstOffset
    self.count = count
  }

  public static let layout = FrameLayout(
    Self.init,
    Field.choice("SETTLE verdict", \Self.verdict, else: .done) {
      "SETTLE names verdict \($0); 0 to 3 are defined"
    }.padded(reserved: ("SETTLE reserved", 3)), Field.integer("SETTLE delivery", \Self.delivery),
    Field.integer("SETTLE first offset", \Self.firstOffset), Field.integer("SETTLE count", \Self.count))

  public init(body reader: inout ByteReader) throws(WireError) {
    self = try Self.layout.decode(&reader)
    guard !firstOffset.addingReportingOverflow(UInt64(count)).overflow else {
      throw WireError(.malformedFrame, "SETTLE is about \(count) records from offset \(firstOffset)")
    }
  }
}

/// COMMIT: how far the subscriber with this stream's durable cursor has come. Its next subscription continues there.
///
/// ```
/// u64 next offset
/// ```
public struct Commit: LaidOutFrame {
  public static let type = FrameType.commit

  /// That of the first record which it hasn't dealt with. One that is behind an earlier COMMIT changes nothing.
  public var nextOffset: UInt64

  public init(nextOffset: UInt64) {
    self.nextOffset = nextOffset
  }

  public static let layout = FrameLayout(Self.init, Field.integer("COMMIT next offset", \Self.nextOffset))
}
