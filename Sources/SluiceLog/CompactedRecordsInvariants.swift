import SluiceWire
import Synchronization

extension CompactedRecords {
  /// Checks everything that must hold between two operations, by walking all of it. Compiled to nothing in release.
  func _checkInvariants() {
    #if DEBUG
      state.withLock { state in
        let isOrdered = state.clock.setbacks.isEmpty
        state.records._checkInvariants(state.table, isOrdered: isOrdered)
        state.deletions._checkInvariants(state.table, isOrdered: isOrdered)
        precondition(
          state.table.count == state.records.count + state.deletions.count, "each key occurs once")
        precondition(state.recordsLostBefore <= state.firstKept)
        // A trim of a stored topic may name records that wait for the disk.
        precondition(state.firstKept <= state.head || state.storage != nil)
        precondition(state.trimmedTo <= state.firstKept)
        precondition(state.clock.recordTime <= state.clock.now + RecordClock.step)
        var (lapsed, lapsedBytes) = (0, 0)
        var place = state.records.first
        while let record = place, state.records.entry(record).offset < state.firstKept {
          lapsed += 1
          lapsedBytes += Int(state.records.entry(record).length)
          place = state.records.next(after: record)
        }
        precondition(lapsed == state.lapsed && lapsedBytes == state.lapsedBytes)
        precondition(
          state.records.first.map { state.records.entry($0).offset >= state.recordsLostBefore } ?? true)
      }
    #endif
  }
}

extension RecordRun {
  /// Checks that the chunks are in order, dense, counted, and found by the table.
  func _checkInvariants(_ table: borrowing KeyTable, isOrdered: Bool) {
    #if DEBUG
      var (records, bytes, memory) = (0, 0, 0)
      var previous: (offset: UInt64, time: Int64)?
      for (position, number) in order.enumerated() {
        let chunk = chunk(number)
        precondition(number & Self.tagBit == tag)
        let isLast = position == order.count - 1
        precondition(isLast || chunk.footprint * 2 >= chunk.capacity && chunk.records > 0, "chunks are dense")
        memory += chunk.capacity
        var (live, liveBytes) = (0, 0)
        for index in 0..<chunk.count {
          let entry = chunk[index]
          if let previous {
            precondition(entry.offset > previous.offset && (entry.time >= previous.time || !isOrdered))
          }
          previous = (entry.offset, entry.time)
          guard entry.isLive else { continue }
          precondition(index >= chunk.firstLive)
          let place = RecordPlace(chunk: number, entry: UInt32(index))
          precondition(table.find(entry.hash) { $0 == place } != nil, "every record is found by its key")
          live += 1
          liveBytes += Int(entry.length)
        }
        precondition(live == chunk.records && liveBytes == chunk.bytes)
        records += live
        bytes += liveBytes
      }
      precondition(records == count && bytes == self.bytes && memory == chunkMemory)
      precondition(chunks.count { $0 != nil } == order.count && unused.count == chunks.count - order.count)
    #endif
  }
}
