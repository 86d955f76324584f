import SluiceWire
import Synchronization

extension TopicLog {
  /// The next run of records, from one segment, and moves the cursor behind it. From any thread, for different cursors.
  ///
  /// Without a lock as long as `hint` is the segment that the cursor is in, and whenever the cursor is at the head. Takes
  /// constant time if everything up to the segment's end is requested and within `bytes`; otherwise it steps over the index,
  /// and over no more records than it returns.
  ///
  /// - Parameters:
  ///   - cursor: one of this log's. To take the step back, keep a copy.
  ///   - records: the maximum number of records to return; `.max` for any number. 0 returns none, but reports a lag.
  ///   - bytes: about the most bytes to hand out. At least one record comes, however large.
  ///   - hint: a segment of this log in which the cursor may be, usually that of its last slice.
  public func next(
    _ cursor: inout LogCursor, records: UInt64 = .max, bytes: Int, hint: Segment? = nil
  ) -> NextResult {
    if let hint, hint.baseOffset == cursor.segmentBase, !hint.isRetired,
      let slice = hint.slice(at: &cursor, records: records, bytes: bytes)
    {
      return .slice(slice)
    }
    if cursor.nextOffset >= head { return .caughtUp }
    return nextWithLock(&cursor, records: records, bytes: bytes)
  }

  @inline(never)
  private func nextWithLock(_ cursor: inout LogCursor, records: UInt64, bytes: Int) -> NextResult {
    let (segment, oldest) = state.withLock { state in
      (state.segments.segment(holding: cursor.nextOffset)?.segment, state.oldest)
    }
    guard let segment else {
      guard cursor.nextOffset < oldest else { return .caughtUp }
      let missed = oldest - cursor.nextOffset
      cursor = LogCursor(startOf: oldest)
      return .lagged(missed: missed)
    }
    if segment.baseOffset != cursor.segmentBase {
      cursor = segment.cursor(at: cursor.nextOffset)
    }
    return segment.slice(at: &cursor, records: records, bytes: bytes).map { .slice($0) } ?? .caughtUp
  }
}

extension Segment {
  /// The records at the cursor, which must be in this segment; nil when there are none, or none are requested.
  fileprivate func slice(at cursor: inout LogCursor, records: UInt64, bytes: Int) -> LogSlice? {
    let end = end
    let start = cursor.position
    guard end.position > start, records > 0 else { return nil }
    if cursor.pendingTimeMark != nil, unsafe !RecordLayout.isRecord(RecordLayout.word(at: memory + start)) {
      cursor.pendingTimeMark = nil
    }
    let firstRecord = Int(truncatingIfNeeded: cursor.nextOffset &- baseOffset)
    let stop: (records: Int, position: Int)
    if UInt64(end.records &- firstRecord) <= records, end.position &- start <= bytes {
      stop = end
    } else {
      stop = self.stop(
        after: (firstRecord, start), end: end, records: Int(clamping: records), bytes: max(bytes, 0))
    }
    let slice = unsafe LogSlice(
      segment: self, bytes: UnsafeRawBufferPointer(start: memory + start, count: stop.position &- start),
      firstOffset: cursor.nextOffset, count: stop.records &- firstRecord)
    cursor.nextOffset &+= UInt64(stop.records &- firstRecord)
    cursor.position = stop.position
    return slice
  }

  /// Where to stop so as to hand out no more than so many records, and, beyond the first, so many bytes.
  private func stop(
    after start: (record: Int, position: Int), end: (records: Int, position: Int), records: Int, bytes: Int
  ) -> (records: Int, position: Int) {
    let recordLimit = min(records, end.records &- start.record) &+ start.record
    let byteLimit = min(bytes, end.position &- start.position) &+ start.position
    var stop = (records: start.record, position: start.position)
    // A few records are sooner walked over than searched for.
    if recordLimit &- start.record > 32,
      let entry = lastIndexEntry(where: { Int($0.record) <= recordLimit && Int($0.position) <= byteLimit }),
      Int(entry.position) > start.position
    {
      stop = (Int(entry.record), Int(entry.position))
      // When bytes are the limit, half of them is enough to save the walk.
      if recordLimit == end.records, stop.position &- start.position >= bytes / 2 { return stop }
    }
    var position = stop.position
    while stop.records < recordLimit {
      let word = unsafe RecordLayout.word(at: memory + position)
      position &+= RecordLayout.itemSize(word)
      if !RecordLayout.isRecord(word) { continue }
      if position > byteLimit, stop.records > start.record { break }
      stop = (stop.records &+ 1, position)
    }
    return stop
  }
}
