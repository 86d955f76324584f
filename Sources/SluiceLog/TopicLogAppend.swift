import SluiceWire
import Synchronization

extension TopicLog {
  /// Appends a batch, and drops what retention no longer keeps. From any thread.
  ///
  /// One copy; the lengths are walked only when the batch has to be split between two segments. Readers may see the
  /// first part of such a batch before the rest.
  ///
  /// - Parameters:
  ///   - batch: items, checked to be whole, records only. An empty batch does nothing.
  ///   - count: how many records these are.
  ///   - milliseconds: the time since 1970, of which ``RecordClock`` makes that of the records.
  ///   - keep: the offset of a record that must not be dropped, nor any after it, whatever the limits; nil for none.
  /// - Returns: the offset of the batch's first record.
  @discardableResult
  public func append(
    _ batch: UnsafeRawBufferPointer, count: Int, at milliseconds: Int64, keepingFrom keep: UInt64? = nil
  ) -> UInt64 {
    guard count > 0, unsafe !batch.isEmpty else { return head }
    var dropped: [Segment] = []
    let first = state.withLock { state in
      let first = state.head
      state.tell(milliseconds)
      let time = state.clock.append(at: milliseconds, head: first)
      unsafe write(batch, count: count, time, to: &state)
      // The newest segment stays, and whatever holds this batch.
      while state.segments.count > 1,
        let cause = state.causeToDropFirstSegment(graceBytes: graceBytes),
        state.segments[0].endOffset <= min(first, keep ?? .max)
      {
        dropped.append(state.dropFirstSegment(by: cause))
      }
      return first
    }
    // Here, without the lock, the dropped segments' memory goes back.
    withExtendedLifetime(dropped) {}
    return first
  }

  private func write(_ batch: UnsafeRawBufferPointer, count: Int, _ time: Int64, to state: inout State) {
    var rest = unsafe batch
    var count = count
    while true {
      // Times don't go back within a segment, so that they can be searched for.
      if !state.segments.isEmpty, state.segments.last.lastTime <= time {
        let room = state.room(for: time)
        if rest.count <= room {
          unsafe put(rest, count: count, time, into: &state)
          return
        }
        let part = unsafe RecordLayout.prefix(of: rest, fitting: room)
        if part.records > 0 {
          unsafe put(
            UnsafeRawBufferPointer(rebasing: rest[..<part.bytes]), count: part.records, time, into: &state)
          unsafe rest = unsafe UnsafeRawBufferPointer(rebasing: rest[part.bytes...])
          count -= part.records
        }
      }
      unsafe openSegment(for: rest, in: &state)
    }
  }

  /// Begins a segment that holds at least the first record of `batch`, and all of it if it can.
  private func openSegment(for batch: UnsafeRawBufferPointer, in state: inout State) {
    var capacity = state.nextCapacity
    while capacity < segmentBytes, capacity < RecordLayout.timeMarkSize + batch.count {
      capacity = min(capacity * 2, segmentBytes)
    }
    state.nextCapacity = min(capacity * 2, segmentBytes)
    let first = unsafe RecordLayout.itemSize(RecordLayout.word(at: batch.baseAddress.unsafelyUnwrapped))
    capacity = max(capacity, RecordLayout.timeMarkSize + first)
    state.memoryBytes += capacity
    let segment = Segment(baseOffset: state.head, capacity: capacity, pool: pool)
    pool.populate(segment)
    state.segments.append(SegmentSummary(segment: segment))
  }

  /// Copies records for which there is room to the end of the newest segment, and makes them readable.
  private func put(_ records: UnsafeRawBufferPointer, count: Int, _ time: Int64, into state: inout State) {
    state.head &+= UInt64(truncatingIfNeeded: count)
    state.recordBytes += records.count
    unsafe state.segments.last.put(records, count: count, time: time) {
      // The head goes first, so that no reader gets ahead of it.
      headOffset.store(state.head, ordering: .releasing)
    }
  }
}

extension TopicLog.State {
  /// Bytes of records that fit into the newest segment, a time mark left room for if one is needed.
  fileprivate func room(for time: Int64) -> Int {
    let last = segments.last
    return last.segment.capacity - last.position - (last.needsMark(time) ? RecordLayout.timeMarkSize : 0)
  }
}

extension SegmentSummary {
  fileprivate func needsMark(_ time: Int64) -> Bool {
    position == 0 || time != lastTime
  }

  /// Copies records of one time to the end, with a time mark if one is needed, and publishes them to readers.
  mutating func put(
    _ bytes: UnsafeRawBufferPointer, count: Int, time: Int64, beforeCommit: () -> Void
  ) {
    index(at: time)
    if needsMark(time) {
      unsafe RecordLayout.writeTimeMark(time, at: segment.memory + position)
      position += RecordLayout.timeMarkSize
      lastTime = time
    }
    unsafe copy(bytes, count: count, recordBytes: bytes.count)
    beforeCommit()
    commit()
  }
}
