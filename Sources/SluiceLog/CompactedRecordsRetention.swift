import SluiceWire
import Synchronization

extension CompactedRecords {
  /// Drops what retention no longer keeps at this time.
  ///
  /// - Parameters:
  ///   - milliseconds: the time since 1970; one that is a little earlier than the latest counts as that.
  ///   - graceBytes: the bytes of records beyond the limits to keep for readers under way, if not the store's own.
  ///   - keep: the offset of a record that must not be dropped, nor any after it, whatever the limits; nil for none.
  public func trim(now milliseconds: Int64, graceBytes: Int? = nil, keepingFrom keep: UInt64? = nil) {
    state.withLock { state in
      state.clock.tell(milliseconds, head: state.head)
      state.lapse()
      state.drop(beyond: graceBytes ?? self.graceBytes, deletionsBeyond: self.graceBytes, keepingFrom: keep)
      state.forgetSetbacks()
      account(&state)
    }
  }

  /// Bytes of the records beyond the limits, from `offset` on: the part of a reader's backlog that retention doesn't cover.
  ///
  /// Takes time for the chunks of these records, and for the entries of the first and the last one.
  public func lapsedBytes(from offset: UInt64) -> Int {
    state.withLock { state in
      state.lapse()
      return state.records.bytes(from: offset, before: state.firstKept)
    }
  }

  /// Changes the limits. The floor that the former limits have set by this time stays.
  ///
  /// - Parameter milliseconds: the time since 1970 at which ages are measured; nil for the latest time that was passed to
  ///   the store.
  public func retain(_ retention: Retention, now milliseconds: Int64? = nil) {
    state.withLock { state in
      if let milliseconds { state.clock.tell(milliseconds, head: state.head) }
      state.lapse()
      state.retention = retention
    }
  }

  /// Drops the oldest of the newest records of keys, down to what `limit` names, at once; and the deletions before these.
  ///
  /// - Parameters:
  ///   - limit: what stays.
  ///   - keep: the offset of a record that must not be dropped, nor any after it; nil for none.
  /// - Returns: how many records late subscribers don't get any more.
  public func trim(to limit: TrimLimit, keepingFrom keep: UInt64? = nil) -> Int {
    state.withLock { state in
      let before = state.kept
      state.lapse()
      let kept = state.kept
      while let place = state.records.first(from: state.firstKept) {
        let entry = state.records.entry(place)
        guard limit.drops(entry.offset, of: state.kept) else { break }
        state.lapse(entry, by: .trim)
      }
      state.raiseFloor(by: limit, dropping: kept - state.kept)
      state.goneBefore = max(state.goneBefore, min(state.trimmedTo, keep ?? .max))
      state.drop(beyond: 0, deletionsBeyond: graceBytes, keepingFrom: keep)
      account(&state)
      return before - state.kept
    }
  }

  /// Drops all records. Readers under way get a lag.
  public func removeAll() {
    state.withLock { state in
      let (clock, accounted) = (state.clock, state.accounted)
      let dropped = state.dropped
      state = State(retention: state.retention, chunkBytes: chunkBytes, head: state.head)
      state.dropped = dropped
      state.clock = clock
      state.accounted = accounted
      account(&state)
    }
  }
}

extension CompactedRecords.State {
  /// Bytes of memory held, for all records and for finding them.
  var memoryBytes: Int { table.memoryBytes + records.memoryBytes + deletions.memoryBytes }

  /// Records, and their bytes, that the limits keep.
  var kept: Int { records.count - lapsed }
  var keptBytes: Int { records.bytes - lapsedBytes }

  /// Counts out the oldest records, as far as they are beyond the limits. A record that was counted out doesn't return.
  mutating func lapse() {
    let retention = retention
    let cutoff = retention.cutoff(at: clock.now)
    while true {
      let isTooMany = retention.records.map { UInt64(kept) > $0 } ?? false
      let isTooMuch = isTooMany || retention.bytes.map { UInt64(keptBytes) > $0 } ?? false
      guard isTooMuch || cutoff != nil, let place = records.first(from: firstKept) else { return }
      let entry = records.entry(place)
      guard isTooMuch || clock.time(entry.time, before: entry.offset + 1) < cutoff ?? .min else { return }
      lapse(entry, by: isTooMany ? .records : isTooMuch ? .bytes : .age)
    }
  }

  /// Forgets the setbacks of the clock that no record is in front of any more.
  fileprivate mutating func forgetSetbacks() {
    guard !clock.setbacks.isEmpty else { return }
    let first = records.first.map { records.entry($0).offset } ?? head
    clock.forget(before: min(first, deletions.first.map { deletions.entry($0).offset } ?? head))
  }

  /// Counts out the oldest record that is kept.
  mutating func lapse(_ entry: RecordEntry, by cause: DroppedRecords.Cause) {
    dropped[cause].add(.init(records: 1, bytes: UInt64(entry.length)))
    lapsed += 1
    lapsedBytes += Int(entry.length)
    firstKept = entry.offset + 1
  }

  /// Raises the floor to where a trim leaves off, which has counted out so many records.
  mutating func raiseFloor(by limit: TrimLimit, dropping count: Int) {
    let end: UInt64
    switch limit {
    case .from(let offset): end = min(offset, head)
    // One that drops no record takes nothing from readers that return.
    case .newest(let limit) where count == 0 && limit > 0: return
    case .newest: end = records.first(from: firstKept).map { records.entry($0).offset } ?? head
    }
    firstKept = max(firstKept, end)
    trimmedTo = max(trimmedTo, end)
  }

  /// Drops the oldest of the records that are beyond the limits, and of the deletions, down to so many bytes of either.
  mutating func drop(beyond graceBytes: Int, deletionsBeyond least: Int, keepingFrom keep: UInt64?) {
    while lapsed > 0, lapsedBytes > graceBytes, let place = records.first {
      let entry = records.entry(place)
      if entry.offset >= keep ?? .max { break }
      recordsLostBefore = entry.offset + 1
      forget(place, entry)
    }
    while let place = deletions.first {
      let entry = deletions.entry(place)
      let isTooMuch = deletions.footprint > max(least, records.footprint / 4)
      guard isTooMuch || entry.offset < trimmedTo, entry.offset < keep ?? .max else { break }
      deletionsLostBefore = entry.offset + 1
      forget(place, entry)
    }
  }

  mutating func forget(_ place: RecordPlace, _ entry: RecordEntry) {
    if let slot = table.find(entry.hash, where: { $0 == place }) { table.remove(slot) }
    remove(place)
  }
}
