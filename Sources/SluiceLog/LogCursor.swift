import SluiceWire

/// Where in a log a subscription begins.
///
/// The floor is the lowest offset that the reader may get: for a late subscriber the log's floor. "Head" is the offset that
/// the next record will get. No position is an error: each has a rule for what is out of range.
public enum StartPosition: Hashable, Sendable {
  /// The topic's replay for late subscribers: the floor; the head if no record is retained.
  case replay

  /// The first record kept; the head when none is.
  case earliest

  /// The head: only records appended later.
  case new

  /// The newest so many records. More than are kept: the first record kept. 0: the head.
  case last(UInt64)

  /// The record with this offset. Below the floor: the floor, and the difference is returned as missed. Beyond the head:
  /// nothing is read until the head has passed it.
  case offset(UInt64)

  /// The first record kept whose time (milliseconds since 1970) is this or later. Before all: the floor. Later than all:
  /// the head, whatever times the records to come will have.
  case time(Int64)
}

/// A position in a log between two records, which a reader holds instead of the records themselves.
///
/// A value. It keeps nothing alive, and costs the log nothing; a reader that must take a step back keeps the copy from
/// before. It belongs to the log that made it.
public struct LogCursor: Hashable, Sendable {
  /// The offset of the record that comes next.
  public internal(set) var nextOffset: UInt64

  /// The time, in milliseconds since 1970, to send before the next record, because the mark with this time lies before
  /// the start of this reader. Set only until the first slice: the sender of that slice sends a time mark with this
  /// value before it and sets this to nil.
  public var pendingTimeMark: Int64?

  /// The base offset of the segment in which `position` counts; `noSegment` while it isn't known.
  var segmentBase: UInt64
  var position: Int

  static let noSegment = UInt64.max
}

extension LogCursor {
  /// Ahead of a record in a segment yet to be found. It may be gone, which the reader learns by a lag, or yet to come.
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
  /// the time at that position, and passes it.
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

extension LogCursor {
  /// How many records are rather stepped over than looked up.
  private static let stride: UInt64 = 64

  /// Moves ahead of the record with this offset, wherever that is. From any thread, for different cursors.
  ///
  /// A few records on in a segment that is at hand, it steps over them; otherwise the place is found with the next read.
  ///
  /// - Parameter hint: a segment of the cursor's log in which it may be.
  public mutating func move(to offset: UInt64, hint: Segment?) {
    if offset == nextOffset { return }
    guard offset > nextOffset, offset - nextOffset <= Self.stride, let hint, hint.baseOffset == segmentBase,
      offset - hint.baseOffset <= UInt64(hint.end.records)
    else {
      self = LogCursor(unplacedAt: offset)
      return
    }
    while nextOffset < offset {
      let item = unsafe hint.memory + position
      let word = unsafe RecordLayout.word(at: item)
      if RecordLayout.isRecord(word) {
        nextOffset &+= 1
      } else {
        // The sender sends it before the next record.
        pendingTimeMark = unsafe RecordLayout.time(ofMarkAt: item)
      }
      position &+= RecordLayout.itemSize(word)
    }
  }
}
