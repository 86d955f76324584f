import SluiceWire
import Synchronization

// The floor: the lowest offset that a late subscriber can get.
extension TopicLog {
  /// The floor; the head when the log keeps nothing. It never goes back. From any thread.
  ///
  /// Takes the lock, and up to a batch's walk: for starts and for display.
  ///
  /// - Parameter now: the time, in milliseconds since 1970, at which ages are measured; nil, or an earlier time, stands for the latest time that was
  ///   passed to the log.
  public func floor(now: Int64? = nil) -> UInt64 {
    // Computed on a copy, outside the lock, and stored: the next call may have an earlier time.
    let (floor, cause) = state.withLock { $0 }.floor(now: now)
    guard cause != nil else { return floor }
    return state.withLock { state in
      state.raiseFloor(to: floor, by: cause)
      return max(state.raisedFloor, state.oldest)
    }
  }

  /// The lowest offset that a reader can get which was under way before: what limits have dropped may still be in memory, what was trimmed is gone for it. From
  /// any thread.
  public var lowestForReturning: UInt64 { state.withLock { max($0.oldest, $0.trimmedTo) } }

  /// Raises the floor to that offset, and drops such records from memory at once. Readers below it get a lag. From any thread.
  ///
  /// - Parameters:
  ///   - offset: the first record that stays; the head, or beyond, for none.
  ///   - keep: the offset of a record that must not be dropped, nor any after it; nil for none.
  /// - Returns: how many records late subscribers don't get any more.
  @discardableResult
  public func trim(to offset: UInt64, keepingFrom keep: UInt64? = nil) -> UInt64 {
    var dropped: [Segment] = []
    let count = state.withLock { state in
      state.raiseFloor(now: nil)
      let offset = min(offset, state.head)
      let before = max(state.raisedFloor, state.oldest)
      state.raiseFloor(to: offset, by: .trim)
      state.trimmedTo = max(state.trimmedTo, offset)
      let end = min(state.trimmedTo, keep ?? .max)
      while let first = state.segments.first, first.endOffset <= end {
        dropped.append(state.dropFirstSegment(by: .trim))
      }
      if let first = state.segments.first, first.baseOffset < end {
        dropped.append(state.shortenFirstSegment(to: end, pool: pool))
      }
      return max(offset, before) - before
    }
    // Here, without the lock, the memory goes back.
    withExtendedLifetime(dropped) {}
    return count
  }
}

extension TopicLog.State {
  /// The floor that limits set at this time, and the limit that retains no record before it; nil if the floor has reached it already.
  func floor(now: Int64?) -> (offset: UInt64, cause: DroppedRecords.Cause?) {
    var floor = (offset: max(oldest, raisedFloor), cause: DroppedRecords.Cause?.none)
    func raise(to offset: UInt64, _ cause: DroppedRecords.Cause) {
      if offset > floor.offset { floor = (offset, cause) }
    }
    if let limit = retention.records {
      raise(to: head - min(limit, head - floor.offset), .records)
    }
    if let limit = retention.bytes, UInt64(recordBytes) > limit {
      raise(to: firstOffset(afterBytes: recordBytes - Int(limit)), .bytes)
    }
    if retention.ageMilliseconds != nil {
      raise(to: firstOffset(keptByAgeAt: clock), .age)
      if let now, now != clock.now {
        var clock = clock
        clock.tell(now, head: head)
        raise(to: firstOffset(keptByAgeAt: clock), .age)
      }
    }
    return floor
  }

  /// Raises the floor to where the limits have it at this time.
  mutating func raiseFloor(now: Int64?) {
    let (offset, cause) = floor(now: now)
    raiseFloor(to: offset, by: cause)
  }

  /// Raises the floor, and counts the records below it as dropped by `cause`.
  ///
  /// - Parameter cause: nil if no further records are below it.
  mutating func raiseFloor(to offset: UInt64, by cause: DroppedRecords.Cause?) {
    guard let cause, offset > raisedFloor else { return }
    dropped[cause].add(uncounted(before: offset))
    countedTo = max(countedTo, offset)
    raisedFloor = offset
  }

  /// Replaces the oldest segment by a copy of its records from `offset` on, and returns it: the caller releases it after the lock.
  ///
  /// - Parameter offset: of a record in the segment, not its first.
  mutating func shortenFirstSegment(to offset: UInt64, pool: SegmentPool) -> Segment {
    let old = segments[0]
    let start = Int(truncatingIfNeeded: offset &- old.baseOffset)
    let place = old.segment.firstPlace { $0.record >= start }
    // It has room for the copy's first time mark, since the original's first one is omitted.
    let segment = Segment(baseOffset: offset, capacity: old.segment.capacity, pool: pool)
    var copy = SegmentSummary(segment: segment)
    unsafe copy.append(
      UnsafeRawBufferPointer(
        start: old.segment.memory + place.position, count: old.position - place.position),
      firstTime: place.time)
    old.segment.retire()
    recordBytes -= place.recordBytes
    segments.replaceFirst(by: copy)
    return old.segment
  }
}

extension SegmentSummary {
  /// Copies items that are records and the time marks between them, in runs that the index can enter.
  fileprivate mutating func append(_ items: UnsafeRawBufferPointer, firstTime: Int64) {
    var time = firstTime
    var position = 0
    while position < items.count {
      let item = unsafe items.baseAddress.unsafelyUnwrapped + position
      if unsafe !RecordLayout.isRecord(RecordLayout.word(at: item)) {
        time = unsafe RecordLayout.time(ofMarkAt: item)
        position += RecordLayout.timeMarkSize
        continue
      }
      let start = position
      var count = 0
      while position < items.count, position - start < IndexEntry.spacing {
        let word = unsafe RecordLayout.word(at: items.baseAddress.unsafelyUnwrapped + position)
        guard RecordLayout.isRecord(word) else { break }
        position += RecordLayout.itemSize(word)
        count += 1
      }
      unsafe put(UnsafeRawBufferPointer(rebasing: items[start..<position]), count: count, time: time) {}
    }
  }
}
