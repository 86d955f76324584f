/// SETTLE: what became of records that a member of a group got. For a group with ``JoinGroup/Acknowledgement/explicit``.
///
/// ```
/// u8 verdict · 3 × u8 0 · u32 delivery · u64 first offset · u32 count
/// ```
///
/// It may be about any delivery to the group, also one on an earlier connection. Records that are with another member by now, or done with, are
/// passed over.
public struct Settle: Frame {
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

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(verdict.rawValue)
    for _ in 0..<3 { writer.integer(UInt8(0)) }
    writer.integer(delivery)
    writer.integer(firstOffset)
    writer.integer(count)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    let verdict: UInt8 = try reader.integer("SETTLE verdict")
    _ = try unsafe reader.bytes("SETTLE reserved", count: 3)
    delivery = try reader.integer("SETTLE delivery")
    firstOffset = try reader.integer("SETTLE first offset")
    count = try reader.integer("SETTLE count")
    guard let verdict = Verdict(rawValue: verdict) else {
      throw WireError(.unsupported, "SETTLE names verdict \(verdict); 0 to 3 are defined")
    }
    self.verdict = verdict
    guard !firstOffset.addingReportingOverflow(UInt64(count)).overflow else {
      throw WireError(.malformedFrame, "SETTLE is about \(count) records from offset \(firstOffset)")
    }
  }
}

/// COMMIT: how far the subscriber with this stream's durable cursor has come. Its next subscription goes on there.
///
/// ```
/// u64 next offset
/// ```
public struct Commit: Frame {
  public static let type = FrameType.commit

  /// That of the first record which it hasn't dealt with. One that is behind an earlier COMMIT changes nothing.
  public var nextOffset: UInt64

  public init(nextOffset: UInt64) {
    self.nextOffset = nextOffset
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(nextOffset)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    nextOffset = try reader.integer("COMMIT next offset")
  }
}
