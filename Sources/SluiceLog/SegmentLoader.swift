import SluiceWire

/// Makes a segment of records that come from elsewhere than a log's appends: from the store, for readers of records that are no longer in memory.
///
/// It belongs to no log; cursors and slices work in it as in any.
public struct SegmentLoader {
  private var summary: SegmentSummary

  /// - Parameters:
  ///   - baseOffset: of the first record.
  ///   - capacity: the most bytes of items.
  public init(baseOffset: UInt64, capacity: Int, pool: SegmentPool) {
    summary = SegmentSummary(segment: Segment(baseOffset: baseOffset, capacity: capacity, pool: pool))
  }

  /// The offset that the next record gets.
  public var nextOffset: UInt64 { summary.endOffset }

  public var room: Int { summary.segment.capacity - summary.position }

  /// Adds items, for which there must be room: whole, with a time mark ahead of the first record, and checked.
  ///
  /// - Parameters:
  ///   - count: how many records these are.
  ///   - recordBytes: of those, without marks.
  ///   - firstTime: that of the first record.
  public mutating func append(
    _ items: UnsafeRawBufferPointer, count: Int, recordBytes: Int, firstTime: Int64
  ) {
    precondition(items.count <= room, "a segment is loaded with more than it has room for")
    summary.index(at: firstTime)
    unsafe summary.copy(items, count: count, recordBytes: recordBytes)
  }

  /// The segment; nothing can be added any more.
  public func finish() -> Segment {
    summary.commit()
    return summary.segment
  }
}

extension Segment {
  /// The offset behind the last record that may be read.
  public var endOffset: UInt64 { baseOffset &+ UInt64(end.records) }

  /// Bytes of memory.
  public var bytes: Int { capacity }
}

extension LogCursor {
  /// Ahead of a record in a segment that is at hand. It must be in there, or at its end.
  public init(at offset: UInt64, in segment: Segment) {
    self = segment.cursor(at: offset)
  }

  /// Whether it stands in that segment, or was last placed there.
  public func isPlaced(in segment: Segment) -> Bool { segmentBase == segment.baseOffset }
}
