import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

// Which records a topic keeps, for late and for attached subscribers.
extension Topic {
  /// Drops records that have exceeded the retention limits. From any loop.
  package func trim(now milliseconds: Int64) {
    let isSetBack = state.withLock { state in
      let isSetBack = tell(milliseconds, &state)
      let isRead = state.presentSubscriptions > 0
      if !isRead, state.epoch.newest == nil, let tail = state.tail {
        // The records are also on disk; memory is for subscribers that follow the head.
        state.epoch.log.drop(before: tail.committed)
        return isSetBack
      }
      // The grace is for attached subscribers.
      state.epoch.log.trim(
        now: milliseconds, graceBytes: isRead ? nil : 0, keepingFrom: keepInMemoryFrom(state))
      state.epoch.newest?.trim(
        now: milliseconds, graceBytes: isRead ? nil : 0, keepingFrom: keepNewestFrom(state))
      return isSetBack
    }
    if isSetBack { commit(within: StoreService.idleDelay) }
  }

  /// Updates the clock: a durable topic stores where its clock was set back. With the lock held.
  ///
  /// - Returns: whether a setback must be stored.
  @discardableResult
  func tell(_ milliseconds: Int64, _ state: inout State) -> Bool {
    guard state.tail?.tell(milliseconds) == true, let clock = state.tail?.clock else { return false }
    storage?.take(clock)
    return true
  }

  /// The offset from which flow control keeps records, whatever the retention limits; nil for none.
  package var keptFrom: UInt64? { state.withLock { keepFrom($0) } }

  /// The offset from which the log in memory keeps records, whatever its limits; nil for none.
  func keepInMemoryFrom(_ state: State) -> UInt64? {
    // Records that aren't on disk must be in memory. Others are read from disk, unless the topic is compact.
    guard let committed = state.tail?.committed else { return keepFrom(state) }
    return state.epoch.newest == nil ? committed : min(committed, keepFrom(state) ?? .max)
  }

  package func keepFrom(_ state: State) -> UInt64? {
    isPaced ? state.strategy.keepFrom(state.readers, unreadFrom: state.unreadFrom) : nil
  }

  /// The error if a record of `batch` has no key, which a compact topic needs; nil if all have one.
  func keyRequired(by batch: UnsafeRawBufferPointer) -> Fault? {
    guard let record = unsafe CompactedRecords.firstWithoutKey(batch) else { return nil }
    return Fault(
      code: .keyRequired,
      message:
        "record \(record) of the batch has no key, and topic \(name) keeps the last record of each key; publish it with a key, or to another topic"
    )
  }

  /// The offset from which flow control keeps newest records, whatever the retention limits; nil for none.
  func keepNewestFrom(_ state: State) -> UInt64? {
    guard isPaced else { return nil }
    var readers = ReaderPositions()
    if state.presentSubscriptions > 0 { readers.oldest = state.readers.readsNewestFrom ?? .max }
    return state.strategy.keepFrom(readers, unreadFrom: state.unreadFrom)
  }

  /// Bytes of newest records beyond the limits that are kept because a subscriber has yet to read them. Records that are kept only for returning subscribers
  /// aren't counted.
  func lapsedBytes(_ state: State) -> UInt64 {
    guard settings.flow == .lossless else { return 0 }
    guard let newest = state.epoch.newest else { return storage?.lapsedBytes ?? 0 }
    return keepNewestFrom(state).map { UInt64(newest.lapsedBytes(from: $0)) } ?? 0
  }

  /// Whether records may expire without an append.
  package var needsTrimming: Bool {
    settings.replayAge != TopicSettings.unlimited || settings.compact == true || storage != nil
  }

  /// The records that retention limits and trims have dropped, in all epochs. From any loop.
  package var dropped: DroppedRecords {
    let (epoch, former) = state.withLock { ($0.epoch, $0.formerlyDropped) }
    var dropped = former
    dropped.add(epoch.dropped)
    return dropped
  }
}
