import SluiceWire
import Synchronization

extension TopicLog {
  /// A cursor for a new reader. From any thread.
  ///
  /// - Parameters:
  ///   - position: where to begin; each case says what happens out of range.
  ///   - lowest: the lowest offset that the reader may get; nil for the log's floor at `now`. Records that have left memory are skipped as well.
  ///   - now: the time, in milliseconds since 1970, at which ages are measured; nil, or a slightly earlier time, stands for the
  ///     latest time that was passed to the log.
  /// - Returns: the cursor, and how many of the records asked for are gone: 0 but for `.offset`.
  public func cursor(
    at position: StartPosition, from lowest: UInt64? = nil, now: Int64? = nil
  ) -> (cursor: LogCursor, missed: UInt64) {
    let lowest = position == .new ? 0 : lowest ?? floor(now: now)
    // The search runs on a copy, outside the lock: the segments in it stay, and their records don't change.
    let state = state.withLock { $0 }
    let first = min(max(lowest, state.oldest), state.head)
    switch position {
    case .replay, .earliest:
      return (state.cursor(at: first), 0)
    case .new:
      return (state.cursor(at: state.head), 0)
    case .last(let count):
      return (state.cursor(at: state.head - min(count, state.head - first)), 0)
    case .offset(let offset):
      let start = max(offset, first)
      return (state.cursor(at: start), start - offset)
    case .time(let time):
      return (state.cursor(at: state.firstOffset(atOrAfter: time, from: first)), 0)
    }
  }

  /// The offset of the oldest record in memory; the head when there is none. Takes the lock.
  public var oldestOffset: UInt64 { state.withLock { $0.oldest } }

  /// Bytes of the records in memory from this offset on, to the head. From any thread.
  ///
  /// Takes the lock, and a search and a short walk in one segment.
  public func bytes(from offset: UInt64) -> Int {
    let state = state.withLock { $0 }
    return offset >= state.head ? 0 : state.recordBytes - state.recordBytes(before: offset)
  }

  /// Whether the record with this offset is in memory. Takes the lock.
  public func hasRecord(_ offset: UInt64) -> Bool {
    state.withLock { $0.oldest <= offset && offset < $0.head }
  }

  /// The time of the record with this offset, in milliseconds since 1970, and the bytes of records from there to the head; nil when the record isn't
  /// in memory. From any thread.
  ///
  /// Takes the lock, a search, and a step for each segment before the record.
  public func backlog(from offset: UInt64) -> (time: Int64, bytes: Int)? {
    let state = state.withLock { $0 }
    guard let summary = state.segments.segment(holding: offset) else { return nil }
    let record = Int(offset - summary.baseOffset)
    let place = summary.segment.firstPlace { $0.record >= record }
    return (place.time, state.recordBytes - state.recordBytes(before: offset))
  }

  /// The latest time of the records that late subscribers can get, in milliseconds since 1970; the least number when there is none. Takes the lock.
  public var latestTime: Int64 {
    let state = state.withLock { $0 }
    return state.clock.setbacks.isEmpty
      ? state.clock.recordTime : state.clock.latest(from: state.floor(now: nil).offset)
  }

  /// The records of the log. Ages are measured at `now`, as in ``floor(now:)``.
  public func statistics(now: Int64? = nil) -> LogStatistics {
    let state = state.withLock { $0 }
    let (first, cause) = state.floor(now: now)
    let lapsed = state.recordBytes(before: first)
    var dropped = state.dropped
    if let cause { dropped[cause].add(state.uncounted(before: first)) }
    return LogStatistics(
      head: state.head, firstOffset: first, bytes: state.recordBytes - lapsed, memoryBytes: state.memoryBytes,
      dropped: dropped)
  }
}

extension TopicLog.State {
  /// The first record that the age limit keeps; the head when there is none.
  func firstOffset(keptByAgeAt clock: RecordClock) -> UInt64 {
    guard let cutoff = retention.cutoff(at: clock.now) else { return oldest }
    let outdated = clock.outdated(before: cutoff)
    let position = segments.firstPosition { $0.endOffset > outdated && $0.lastTime >= cutoff }
    guard position < segments.count else { return head }
    let segment = segments[position].segment
    let place = segment.firstPlace {
      $0.time >= cutoff && segment.baseOffset + UInt64($0.record) >= outdated
    }
    return segment.baseOffset + UInt64(place.record)
  }

  /// The first record that has at least so many bytes of records before it; the head when there is none.
  func firstOffset(afterBytes bytes: Int) -> UInt64 {
    var bytes = bytes
    // A linear scan: at most the grace and a segment are beyond the limit.
    for position in 0..<segments.count {
      let summary = segments[position]
      if bytes < summary.recordBytes {
        return summary.baseOffset + UInt64(summary.segment.firstPlace { $0.recordBytes >= bytes }.record)
      }
      bytes -= summary.recordBytes
    }
    return head
  }

  /// The first record from an offset on with this time or a later one; the head when there is none.
  fileprivate func firstOffset(atOrAfter time: Int64, from first: UInt64) -> UInt64 {
    // Times may go back where a segment begins, behind which there is a record with the time.
    let end = clock.span(of: time, from: first).upperBound
    let position = segments.firstPosition {
      $0.endOffset > first && ($0.lastTime >= time || $0.baseOffset >= end)
    }
    guard position < segments.count else { return head }
    let segment = segments[position].segment
    let place = segment.firstPlace { $0.time >= time && segment.baseOffset + UInt64($0.record) >= first }
    return segment.baseOffset + UInt64(place.record)
  }

  /// Bytes of the records in memory that stand before this offset.
  func recordBytes(before offset: UInt64) -> Int {
    var bytes = 0
    for position in 0..<segments.count {
      let summary = segments[position]
      if offset < summary.endOffset {
        guard offset > summary.baseOffset else { break }
        let record = Int(offset - summary.baseOffset)
        return bytes + summary.segment.firstPlace { $0.record >= record }.recordBytes
      }
      bytes += summary.recordBytes
    }
    return bytes
  }

  /// A cursor ahead of the record with this offset, which must be in memory, the head, or beyond.
  fileprivate func cursor(at offset: UInt64) -> LogCursor {
    if let summary = segments.segment(holding: offset) { return summary.segment.cursor(at: offset) }
    guard offset == head, !segments.isEmpty else { return LogCursor(unplacedAt: offset) }
    let last = segments.last
    return LogCursor(
      nextOffset: head, pendingTimeMark: last.lastTime, segmentBase: last.baseOffset,
      position: last.position)
  }
}
