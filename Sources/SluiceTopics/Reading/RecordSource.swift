import SluiceLog
import SluiceWire

/// The newest segment that the readers on a loop have read of a topic: where those that follow the head find their records without a lock.
///
/// An object, so that a reader needn't have all of its owner's state to itself while it reads. Belongs to that loop.
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

  /// What the log has dropped isn't kept alive for the sake of a short cut.
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
/// A value without I/O. Its owner asks for runs of records with ``next(demand:before:bytes:largest:hint:)``, says what a lag means, and has
/// ``StoreRequest``s carried out. It belongs to one loop, or to a lock of its owner.
@usableFromInline package struct RecordSource: Sendable {
  /// What there is at the cursor.
  package enum Step {
    /// Records from one segment, behind which the cursor has moved; and the time to be told before them, if any.
    case run(LogSlice, mark: Int64?)
    /// Copies of the newest records of their keys, likewise. Records of so many bytes were passed by, which the filter doesn't let through.
    case copies(CopiedRecords, passed: Int)
    /// Only passed by, and perhaps the end of the newest records was reached. There may be more: ask again.
    case passed(bytes: Int)
    /// There are records, and no demand.
    case demandExhausted
    /// There is no record yet.
    case caughtUp
    /// So many records are gone. The cursor has moved behind them.
    case lagged(missed: UInt64)
    /// The records are in storage and have to be loaded; nil when they are being loaded. Ask again when they were taken in.
    case loading(StoreRequest?)
  }

  /// Says which records are wanted; nil for all. Copies are of these only; runs are of all records.
  @usableFromInline package let matcher: RecordMatcher?
  private let log: TopicLog
  @usableFromInline var cursor: LogCursor
  /// Nil unless late readers of the topic get the newest record of each key.
  @usableFromInline var compacted: CompactedReader?
  /// Nil unless the topic is durable, and readers that are behind get all of its records.
  private var store: StoreReader?
  /// Whether the cursor's place is one in the chunk that was read from storage: a segment of the log may begin at the same offset, and a place in the one means
  /// nothing in the other.
  private var isInChunk = false

  /// - Parameters:
  ///   - compacted: of a topic that is compact.
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

  /// Whether some offsets never come, without being missed.
  @inlinable package var leavesGaps: Bool { compacted != nil || matcher != nil }

  /// Where copies end that were made last: no record before that comes again.
  package var compactedEnd: UInt64 { compacted?.end ?? cursor.nextOffset }

  // MARK: Reading

  /// The next records, at least one however large, and moves the cursor behind them.
  ///
  /// - Parameters:
  ///   - demand: the most records that may be sent. With a ``matcher`` runs may have more, of which only those that are wanted need demand.
  ///   - limit: no run goes beyond that offset, which must be beyond the cursor.
  ///   - bytes: about the most bytes.
  ///   - largest: the most bytes of a run, if there is no matcher, and of a run of copies. A single record may be longer.
  ///   - hint: of the loop and the topic.
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
    // Behind each run there is mostly nothing more, which is told without looking at a segment.
    if cursor.nextOffset >= log.head { return .caughtUp }
    switch log.next(&cursor, records: records, bytes: bytes, hint: hint.segment(of: log)) {
    case .slice(let slice):
      hint.saw(slice.segment, of: log)
      return .run(slice, mark: cursor.pendingTimeMark.take())
    case .caughtUp: return .caughtUp
    case .lagged(let missed): return nextBelowLog(missed, demand, records, bytes, largest)
    }
  }

  /// Returns nil when the log has its turn.
  @inline(never)
  private mutating func nextCompacted(_ demand: UInt64, _ bytes: Int, _ largest: Int) -> Step? {
    var offset = cursor.nextOffset
    guard offset < compacted?.end ?? 0 else { return nil }
    let step = compacted?.next(at: &offset, demand: demand, bytes: bytes, largest: largest, matcher)
    if offset != cursor.nextOffset { cursor = LogCursor(unplacedAt: offset) }
    return step
  }

  /// Returns nil when the chunk is at its end.
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

  /// The log has dropped what is to be read next: the newest of each key may be there, or storage may have it.
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

  /// Goes back over the last records of the run that came last: so many of them, and so many bytes of items.
  package mutating func stepBack(records: Int, bytes: Int) {
    cursor.stepBack(records: records, bytes: bytes)
  }

  /// Moves the cursor ahead of the record with that offset.
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

  /// Has the records behind those that come from storage now loaded ahead of time. Returns what is to be loaded, if anything.
  @inline(__always)
  package mutating func readAhead() -> StoreRequest? {
    isInChunk ? store?.readAhead(before: log) : nil
  }

  /// Whether the result of a request is of use: the source may have been moved elsewhere meanwhile.
  package func awaits(_ request: StoreRequest) -> Bool { store?.awaits(request) ?? false }

  /// Takes what was loaded. A request that has failed stays open until it is repeated or abandoned.
  package mutating func take(_ records: StoredRecords, for request: StoreRequest) {
    store?.take(records, for: request)
  }

  /// A request has failed, and isn't repeated.
  package mutating func abandon(_ request: StoreRequest) {
    store?.abandon(request)
  }

  /// Lets go of what was read from storage.
  package mutating func dropStored() {
    if isInChunk { place(at: cursor.nextOffset) }
    store?.drop()
  }

  /// Lets go of what was read from storage if other readers need the memory: this one has no demand.
  package mutating func dropStoredIfCrowded() {
    if let store, store.isCrowded { dropStored() }
  }
}
