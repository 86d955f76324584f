import SluiceWire

/// A run of records of a log, as bytes that can be sent as they are: items, time marks among them.
///
/// It begins with a record or the time mark of one and ends with a record. The segment keeps the bytes in place: they are
/// valid, and constant, for as long as it is held, on any thread.
@safe
public struct LogSlice {
  /// Holds the memory of `bytes`.
  public let segment: Segment

  /// The items.
  public let bytes: UnsafeRawBufferPointer

  /// The offset of the first record.
  public let firstOffset: UInt64

  /// How many records there are, at least 1; time marks are not counted.
  public let count: Int

  /// A part of it: `count` records, whose items are in that range of its bytes, behind the first so many.
  public func part(_ range: Range<Int>, firstRecord: Int, count: Int) -> LogSlice {
    unsafe LogSlice(
      segment: segment, bytes: UnsafeRawBufferPointer(rebasing: bytes[range]),
      firstOffset: firstOffset &+ UInt64(firstRecord), count: count)
  }
}

/// The log's answer to a reader.
public enum NextResult {
  /// The next records. The cursor stands behind them.
  case slice(LogSlice)

  /// Nothing: the cursor is at the head, or no record was requested.
  case caughtUp

  /// The records at the cursor are gone. The cursor stands at the oldest record that there is, or at the head, so many
  /// records further on.
  case lagged(missed: UInt64)
}

/// The records of a log, at one moment.
public struct LogStatistics: Hashable, Sendable {
  /// The offset that the next record will get.
  public var head: UInt64

  /// The offset of the first record that retention keeps; the head when it keeps none.
  public var firstOffset: UInt64

  /// Bytes of the records that retention keeps, each counted with its length word.
  public var bytes: Int

  /// Bytes of memory held, which is at least as much: whole segments, and the grace for readers under way.
  public var memoryBytes: Int

  /// The records dropped by retention limits and trims since the log was created, including those that are only in memory for the
  /// grace.
  public var dropped: DroppedRecords

  /// The records that retention keeps.
  public var records: UInt64 { head - firstOffset }
}
