import SluiceWire

/// Makes a segment of records that come from elsewhere than a log's appends: from the store, for readers of records that are no longer in memory.
///
/// It belongs to no log; cursors and slices work in it as in any.
public struct SegmentLoader {
  private let segment: Segment
  private var records = 0
  private var position = 0
  private var recordBytes = 0
  private var indexedPosition: Int?

  /// - Parameters:
  ///   - baseOffset: of the first record.
  ///   - capacity: the most bytes of items.
  public init(baseOffset: UInt64, capacity: Int, pool: SegmentPool) {
    segment = Segment(baseOffset: baseOffset, capacity: capacity, pool: pool)
  }

  /// The offset that the next record gets.
  public var nextOffset: UInt64 { segment.baseOffset &+ UInt64(records) }

  public var room: Int { segment.capacity - position }

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
    if indexedPosition.map({ position - $0 >= IndexEntry.spacing }) ?? true {
      segment.addIndexEntry(
        Place(record: records, position: position, recordBytes: self.recordBytes, time: firstTime))
      indexedPosition = position
    }
    if let source = items.baseAddress {
      unsafe (segment.memory + position).copyMemory(from: source, byteCount: items.count)
    }
    position += items.count
    records += count
    self.recordBytes += recordBytes
  }

  /// The segment; nothing can be added any more.
  public func finish() -> Segment {
    segment.commit(records: records, position: position)
    return segment
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
