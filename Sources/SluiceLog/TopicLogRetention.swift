import SluiceWire
import Synchronization

/// The records that remain when a topic's oldest records are dropped on request.
public enum TrimLimit: Hashable, Sendable {
  /// The record of that offset, and those after it.
  case from(UInt64)
  /// So many of the newest records.
  case newest(UInt64)

  /// Whether the oldest of so many records, which has that offset, is dropped.
  func drops(_ offset: UInt64, of count: Int) -> Bool {
    switch self {
    case .from(let first): offset < first
    case .newest(let limit): UInt64(count) > limit
    }
  }
}

/// The retention of a log for late subscribers: every limit that is set must be met.
///
/// A late subscriber gets exactly the newest records that all the limits allow. Memory is given back by whole
/// segments, so a log may hold somewhat more than that; see ``TopicLog`` for the readers that can still read it.
public struct Retention: Hashable, Sendable {
  /// The most records; nil for no limit.
  public var records: UInt64?

  /// The most bytes, counting each record's item as it travels, with its length word (time marks aren't counted); nil
  /// for no limit. A newest record that is larger than this alone is not kept.
  public var bytes: UInt64?

  /// The greatest age of a record, in milliseconds: one that is exactly this old is kept. Nil for no limit; a negative
  /// age counts as 0.
  public var ageMilliseconds: Int64?

  public init(records: UInt64? = nil, bytes: UInt64? = nil, ageMilliseconds: Int64? = nil) {
    self.records = records
    self.bytes = bytes
    self.ageMilliseconds = ageMilliseconds
  }

  /// No limits.
  public static var everything: Self { Self() }

  /// Nothing for late subscribers.
  public static var none: Self { Self(records: 0) }
}

extension TopicLog {
  /// Drops what retention no longer keeps at this time. From any thread.
  ///
  /// Appending does so too, so that this is needed only where ages are limited, or to give up the grace of a topic that
  /// rests: unlike `append` it may drop the newest segment as well.
  ///
  /// - Parameters:
  ///   - milliseconds: the time since 1970; one that is a little earlier than the latest counts as that.
  ///   - graceBytes: the bytes of the newest records to keep for readers under way, if not the log's own; 0 when it is known
  ///     that no reader is behind. A reader that is behind after all gets a lag.
  ///   - keep: the offset of a record that must not be dropped, nor any after it, whatever the limits; nil for none.
  public func trim(now milliseconds: Int64, graceBytes: Int? = nil, keepingFrom keep: UInt64? = nil) {
    let graceBytes = graceBytes ?? self.graceBytes
    var dropped: [Segment] = []
    state.withLock { state in
      state.tell(milliseconds)
      state.raiseFloor(now: nil)
      while let cause = state.causeToDropFirstSegment(graceBytes: graceBytes),
        state.segments[0].endOffset <= keep ?? .max
      {
        dropped.append(state.dropFirstSegment(by: cause))
      }
    }
    // Here, without the lock, the memory goes back.
    withExtendedLifetime(dropped) {}
  }

  /// Changes the limits. The floor that the former limits have set by this time stays. From any thread.
  ///
  /// - Parameter milliseconds: the time since 1970 at which ages are measured; nil for the latest time that was passed
  ///   to the log.
  public func retain(_ retention: Retention, now milliseconds: Int64? = nil) {
    state.withLock { state in
      state.raiseFloor(now: milliseconds)
      state.retention = retention
    }
  }

  /// Drops whole segments with records before that offset only, whatever the limits. Readers below it get a lag. From any thread.
  public func drop(before offset: UInt64) {
    var dropped: [Segment] = []
    state.withLock { state in
      while let first = state.segments.first, first.endOffset <= offset {
        dropped.append(state.dropFirstSegment())
      }
    }
    withExtendedLifetime(dropped) {}
  }

  /// Drops all records, and continues with a later offset. Readers that had not reached that get a lag. From any thread.
  public func skip(to offset: UInt64) {
    var dropped: [Segment] = []
    state.withLock { state in
      guard offset > state.head else { return }
      while !state.segments.isEmpty { dropped.append(state.dropFirstSegment()) }
      state.head = offset
      headOffset.store(offset, ordering: .releasing)
    }
    withExtendedLifetime(dropped) {}
  }

  /// Drops all records. Readers below the head get a lag; the offsets continue from the head. From any thread.
  public func removeAll() {
    var dropped: [Segment] = []
    state.withLock { state in
      while !state.segments.isEmpty { dropped.append(state.dropFirstSegment()) }
    }
    withExtendedLifetime(dropped) {}
  }
}

extension Retention {
  /// The time of the oldest record that the age limit keeps; nil without one.
  public func cutoff(at now: Int64) -> Int64? {
    guard let ageMilliseconds else { return nil }
    let (cutoff, overflow) = now.subtractingReportingOverflow(max(ageMilliseconds, 0))
    return overflow ? .min : cutoff
  }
}

extension TopicLog.State {
  /// Takes the present time. Records that were too old before the clock is set back stay dropped.
  @inline(__always)
  mutating func tell(_ milliseconds: Int64) {
    if clock.isSetBack(to: milliseconds) { raiseFloor(now: nil) }
    clock.tell(milliseconds, head: head)
  }

  /// Why no record of the oldest segment is kept. Nil without segments, and while a record of it is kept, by retention or by grace.
  func causeToDropFirstSegment(graceBytes: Int) -> DroppedRecords.Cause? {
    guard let first = segments.first else { return nil }
    // A trim gives no grace: its remaining records were for a reader.
    if first.endOffset <= trimmedTo { return .trim }
    let newerBytes = recordBytes - first.recordBytes
    if newerBytes < graceBytes { return nil }
    if let limit = retention.records, head - first.endOffset >= limit { return .records }
    if let limit = retention.bytes, UInt64(newerBytes) >= limit { return .bytes }
    if let cutoff = retention.cutoff(at: clock.now),
      clock.time(first.lastTime, before: first.endOffset) < cutoff
    {
      return .age
    }
    return nil
  }

  /// Takes the oldest segment out, and counts its records as dropped; the caller releases it after the lock.
  mutating func dropFirstSegment(by cause: DroppedRecords.Cause) -> Segment {
    let dropped = uncounted(before: segments[0].endOffset)
    self.dropped[cause].add(dropped)
    return dropFirstSegment()
  }

  /// The records in memory before an offset that aren't counted as dropped yet.
  func uncounted(before offset: UInt64) -> DroppedRecords.Amount {
    let first = max(oldest, countedTo)
    guard offset > first else { return .init() }
    return .init(
      records: offset - first, bytes: UInt64(recordBytes(before: offset) - recordBytes(before: first)))
  }

  /// Takes the oldest segment out; the caller releases it after the lock.
  mutating func dropFirstSegment() -> Segment {
    let first = segments.removeFirst()
    first.segment.retire()
    recordBytes -= first.recordBytes
    memoryBytes -= first.segment.capacity
    if segments.isEmpty { nextCapacity = firstCapacity }
    clock.forget(before: oldest)
    return first.segment
  }
}
