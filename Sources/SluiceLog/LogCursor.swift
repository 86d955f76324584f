/// A place in a log between two records: what a reader holds instead of the records themselves.
///
/// A value. It keeps nothing alive, and costs the log nothing; a reader that must take a step back keeps the copy from
/// before. It belongs to the log that made it.
public struct LogCursor: Hashable, Sendable {
  /// The offset of the record that comes next.
  public internal(set) var nextOffset: UInt64

  /// The time, in milliseconds since 1970, that must be told ahead of the next record because the mark that gave it lies
  /// before the start of this reader. Set only until the first slice: the sender of that slice sends a time mark with
  /// this value before it and sets this to nil.
  public var pendingTimeMark: Int64?

  /// The base offset of the segment in which `position` counts; `noSegment` while it isn't known.
  var segmentBase: UInt64
  var position: Int

  static let noSegment = UInt64.max
}

extension LogCursor {
  /// Ahead of a record in a segment yet to be found. It may be gone, of which the reader is told, or yet to come.
  public init(unplacedAt offset: UInt64) {
    self.init(nextOffset: offset, pendingTimeMark: nil, segmentBase: Self.noSegment, position: 0)
  }

  /// Ahead of a segment's first record, which has a time mark of its own.
  init(startOf base: UInt64) {
    self.init(nextOffset: base, pendingTimeMark: nil, segmentBase: base, position: 0)
  }
}

extension LogCursor {
  /// Goes back over the last records of the slice that it has just been moved behind: so many of them, and so many bytes of items. The caller knows
  /// the time that is in force there, and tells it.
  public mutating func stepBack(records: Int, bytes: Int) {
    nextOffset &-= UInt64(records)
    position &-= bytes
  }
}

extension Segment {
  /// A cursor ahead of the record with this offset, or at the segment's end. Walks unless it is the first.
  func cursor(at offset: UInt64) -> LogCursor {
    if offset == baseOffset { return LogCursor(startOf: baseOffset) }
    let record = Int(truncatingIfNeeded: offset &- baseOffset)
    let place = firstPlace { $0.record >= record }
    return LogCursor(
      nextOffset: offset, pendingTimeMark: place.time, segmentBase: baseOffset, position: place.position)
  }
}
