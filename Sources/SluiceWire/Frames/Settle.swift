/// SETTLE: what became of records that a member of a group got. For a group with ``JoinGroup/Acknowledgement/explicit``.
///
/// ```
/// u8 verdict · 3 × u8 0 · u32 delivery · u64 first offset · u32 count · u32 delay, left out when it is by the backoff
/// ```
///
/// It may be about any delivery to the group, also one on an earlier connection. Records that are with another member by now, or done with, are
/// passed over.
public struct Settle: LaidOutFrame {
  public static let type = FrameType.settle

  /// The number is the one on the wire.
  public enum Verdict: UInt8, Hashable, Sendable, CaseIterable {
    /// They are done.
    case acknowledge = 0
    /// They should be delivered again, to any member, after ``Settle/delay``.
    case retry = 1
    /// No member can process them: they go to the group's dead letters at once.
    case reject = 2
    /// Their member is still processing them: their deadline begins anew.
    case extend = 3
  }

  /// A ``delay`` that leaves the time to the group's ``JoinGroup/Settings/retryBackoff``.
  public static let byBackoff = UInt32.max

  public var verdict: Verdict
  /// For which time they were delivered: see ``Deliveries``.
  public var delivery: UInt32
  public var firstOffset: UInt64
  /// How many, with offsets that follow one by one. 0 is allowed.
  public var count: UInt32
  /// With ``Verdict/retry``, how long the records wait before they are delivered again, in milliseconds; or ``byBackoff``.
  public var delay: UInt32

  public init(
    _ verdict: Verdict, delivery: UInt32, firstOffset: UInt64, count: UInt32, delay: UInt32 = byBackoff
  ) {
    self.verdict = verdict
    self.delivery = delivery
    self.firstOffset = firstOffset
    self.count = count
    self.delay = delay
  }

  public static let layout = FrameLayout(
    Self.init,
    Field.choice("SETTLE verdict", \Self.verdict, else: .acknowledge) {
      "SETTLE names verdict \($0); 0 to 3 are defined"
    }.padded(reserved: ("SETTLE reserved", 3)), Field.integer("SETTLE delivery", \Self.delivery),
    Field.integer("SETTLE first offset", \Self.firstOffset), Field.integer("SETTLE count", \Self.count),
    .delay)

  public init(body reader: inout ByteReader) throws(WireError) {
    self = try Self.layout.decode(&reader)
    guard !firstOffset.addingReportingOverflow(UInt64(count)).overflow else {
      throw WireError(.malformedFrame, "SETTLE is about \(count) records from offset \(firstOffset)")
    }
  }
}

extension Field where Owner == Settle, Value == UInt32 {
  fileprivate static var delay: Field {
    Field(
      write: { frame, writer in if frame.delay != Settle.byBackoff { writer.integer(frame.delay) } },
      read: { (reader: inout FieldReader) throws(WireError) in try reader.bytes.integer("SETTLE delay") }
    ).added(absent: Settle.byBackoff)
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
