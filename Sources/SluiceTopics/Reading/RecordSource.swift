import SluiceLog
import SluiceWire

/// The newest segment that the readers on a loop have read of a topic. Readers that follow the head find their records in it without a lock.
///
/// An object, so that a reader doesn't need exclusive access to all of its owner's state while it reads. Belongs to that loop.
package final class SegmentHint {
  private var segment: Segment?
  private var log: TopicLog?

  package init() {}

  @inline(__always)
  fileprivate func segment(of log: TopicLog) -> Segment? { self.log === log ? segment : nil }

  /// A slice came from `segment`.
  fileprivate func saw(_ segment: Segment, of log: TopicLog) {
    if log === self.log, let known = self.segment, !known.isRetired, known.baseOffset >= segment.baseOffset {
      return
    }
    self.segment = segment
    self.log = log
  }

  /// Releases a segment that the log has dropped, so that the hint doesn't keep it alive.
  func dropRetired() {
    if let segment, segment.isRetired { clear() }
  }

  func clear() {
    segment = nil
    log = nil
  }
}

/// A reader of one epoch of a topic: a cursor, and the places in which the records at the cursor are found.
///
/// ```
///   compact topics    newest of each key ──┐
///   durable topics    storage ─────────────┼── in memory (the log) ──► head
///   others                                 ┘
/// ```
///
/// A value without I/O. Its owner takes runs of records with ``next(demand:before:bytes:largest:hint:)``, decides what a lag means, and performs the
/// ``StoreRequest``s. It belongs to one loop, or to a lock of its owner.
@usableFromInline package struct RecordSource: Sendable {
  /// The result of reading at the cursor.
  package enum Step {
    /// Records from one segment, behind which the cursor has moved; and the time to send before them, if any.
    case run(LogSlice, mark: Int64?)
    /// Copies of the newest record of each key, likewise. `passed` is the bytes of records that the filter has skipped.
    case copies(CopiedRecords, passed: Int)
    /// Records were only skipped, and the end of the newest records may have been reached. There may be more: call again.
    case passed(bytes: Int)
    /// There are records, but no demand.
    case demandExhausted
    /// There is no record yet.
    case caughtUp
    /// So many records were dropped. The cursor has moved behind them.
    case lagged(missed: UInt64)
    /// The records are in storage and must be loaded; nil while they are being loaded. Call again after they were taken in.
    case loading(StoreRequest?)
  }

  /// Selects the wanted records; nil for all. Copies contain only these; runs contain all records.
  @usableFromInline package let matcher: RecordMatcher?
  private let log: TopicLog
  @usableFromInline var cursor: LogCursor
  /// Nil unless late readers of the topic get the newest record of each key.
  @usableFromInline var compacted: CompactedReader?
  /// Nil unless the topic is durable, and readers that lag get all of its records.
  private var store: StoreReader?
  /// Whether the cursor's place is in the chunk that was read from storage. A segment of the log may begin at the same offset, but its places are different.
  private var isInChunk = false

  /// - Parameters:
  ///   - compacted: the newest record of each key, for a compact topic.
  ///   - portions: how much is read from storage at a time.
  package init(
    _ epoch: TopicEpoch, at cursor: LogCursor, matcher: RecordMatcher? = nil,
    compacted: CompactedReader? = nil,
    portions: ClosedRange<Int> = StoreReader.portions
  ) {
    log = epoch.log
    self.cursor = cursor
    self.matcher = matcher
    self.compacted = compacted
    store = epoch.newest == nil ? epoch.storage.map { StoreReader($0, portions: portions) } : nil
  }

  /// The offset of the record that comes next.
  @inlinable package var nextOffset: UInt64 { cursor.nextOffset }

  /// Whether the newest record of each key is read at the moment.
  @inlinable package var isCompacted: Bool {
    guard let compacted else { return false }
    return cursor.nextOffset < compacted.end
  }

  /// Whether some offsets are never returned, without being missed.
  @inlinable package var leavesGaps: Bool { compacted != nil || matcher != nil }

  /// The end of the last copies: no earlier record is returned again.
  package var compactedEnd: UInt64 { compacted?.end ?? cursor.nextOffset }

  // MARK: Reading

  /// Returns the next records, at least one however large, and moves the cursor behind them.
  ///
  /// - Parameters:
  ///   - demand: the most records that may be sent. With a ``matcher``, a run may have more records; only those that match use demand.
  ///   - limit: no run extends beyond that offset, which must be beyond the cursor.
  ///   - bytes: about the most bytes.
  ///   - largest: the most bytes of a run of copies, and of any run if there is no matcher. A single record may be longer.
  ///   - hint: the hint of the loop and the topic.
  @inline(__always)
  package mutating func next(
    demand: UInt64, before limit: UInt64 = .max, bytes: Int, largest: Int = .max, hint: SegmentHint
  ) -> Step {
    if compacted != nil, let step = nextCompacted(demand, bytes, largest) { return step }
    var records = limit &- cursor.nextOffset
    var bytes = bytes
    if matcher == nil {
      guard demand > 0 else { return cursor.nextOffset < log.head ? .demandExhausted : .caughtUp }
      records = min(records, demand)
      bytes = min(bytes, largest)
    }
    if isInChunk, let slice = nextInChunk(records, bytes) {
      return .run(slice, mark: cursor.pendingTimeMark.take())
    }
    // After a run the cursor is mostly at the head, which this check finds without accessing a segment.
    if cursor.nextOffset >= log.head { return .caughtUp }
    switch log.next(&cursor, records: records, bytes: bytes, hint: hint.segment(of: log)) {
    case .slice(let slice):
      hint.saw(slice.segment, of: log)
      return .run(slice, mark: cursor.pendingTimeMark.take())
    case .caughtUp: return .caughtUp
    case .lagged(let missed): return nextBelowLog(missed, demand, records, bytes, largest)
    }
  }

  /// Returns nil if the log is to be read next.
  @inline(never)
  private mutating func nextCompacted(_ demand: UInt64, _ bytes: Int, _ largest: Int) -> Step? {
    var offset = cursor.nextOffset
    guard offset < compacted?.end ?? 0 else { return nil }
    let step = compacted?.next(at: &offset, demand: demand, bytes: bytes, largest: largest, matcher)
    if offset != cursor.nextOffset { cursor = LogCursor(unplacedAt: offset) }
    return step
  }

  /// Returns nil at the end of the chunk.
  @inline(never)
  private mutating func nextInChunk(_ records: UInt64, _ bytes: Int) -> LogSlice? {
    if let chunk = store?.chunk, cursor.nextOffset < chunk.endOffset,
      cursor.nextOffset >= store?.goneBefore ?? 0,
      case .slice(let slice) = log.next(&cursor, records: records, bytes: bytes, hint: chunk)
    {
      return slice
    }
    place(at: cursor.nextOffset)
    if cursor.nextOffset >= log.oldestOffset { store?.drop() }
    return nil
  }

  /// Continues after the log has dropped the next records: the newest record of each key may be available, or storage may have them.
  @inline(never)
  private mutating func nextBelowLog(
    _ missed: UInt64, _ demand: UInt64, _ records: UInt64, _ bytes: Int, _ largest: Int
  ) -> Step {
    let offset = cursor.nextOffset - missed
    if compacted != nil {
      place(at: offset)
      compacted?.restart(before: log.head)
      return nextCompacted(demand, bytes, largest) ?? .passed(bytes: 0)
    }
    guard let found = store?.seek(offset) else { return .lagged(missed: missed) }
    switch found {
    case .loading(let request):
      place(at: offset)
      return .loading(request)
    case .missed(let next):
      place(at: next)
      return .lagged(missed: next - offset)
    case .ready(let chunk):
      place(at: offset, in: chunk)
      return nextInChunk(records, bytes).map { .run($0, mark: cursor.pendingTimeMark.take()) }
        ?? .passed(bytes: 0)
    }
  }

  // MARK: Moving

  /// Moves back over the last records of the latest run: so many records, and so many bytes of items.
  package mutating func stepBack(records: Int, bytes: Int) {
    cursor.stepBack(records: records, bytes: bytes)
  }

  /// Moves the cursor to the record with that offset.
  package mutating func move(to offset: UInt64, hint: SegmentHint) {
    if let chunk = store?.chunk, chunk.baseOffset <= offset, offset < chunk.endOffset {
      if isInChunk { cursor.move(to: offset, hint: chunk) }
      if !isInChunk || !cursor.isPlaced(in: chunk) { place(at: offset, in: chunk) }
    } else if isInChunk {
      place(at: offset)
    } else {
      cursor.move(to: offset, hint: hint.segment(of: log))
    }
  }

  private mutating func place(at offset: UInt64, in chunk: Segment? = nil) {
    cursor = chunk.map { LogCursor(at: offset, in: $0) } ?? LogCursor(unplacedAt: offset)
    isInChunk = chunk != nil
  }

  // MARK: Storage

  /// Starts to load the records that follow those read from storage now. Returns the request to perform, if any.
  @inline(__always)
  package mutating func readAhead() -> StoreRequest? {
    isInChunk ? store?.readAhead(before: log) : nil
  }

  /// Whether the result of a request is still needed: the source may have been moved meanwhile.
  package func awaits(_ request: StoreRequest) -> Bool { store?.awaits(request) ?? false }

  /// Takes loaded records. A failed request stays open until it is repeated or abandoned.
  package mutating func take(_ records: StoredRecords, for request: StoreRequest) {
    store?.take(records, for: request)
  }

  /// Abandons a failed request, which isn't repeated.
  package mutating func abandon(_ request: StoreRequest) {
    store?.abandon(request)
  }

  /// Releases the records that were read from storage.
  package mutating func dropStored() {
    if isInChunk { place(at: cursor.nextOffset) }
    store?.drop()
  }

  /// Releases the records that were read from storage if other readers need the memory; this reader has no demand.
  package mutating func dropStoredIfCrowded() {
    if let store, store.isCrowded { dropStored() }
  }
}
