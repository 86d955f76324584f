import SluiceIO
import SluiceLog
import SluiceTopics
import SluiceWire

/// Searches a topic for one page of records, a portion at a time, so that the loop serves its connections in between.
///
/// A search towards newer records is one walk. A search towards older ones walks through several windows, the newest window first, since batches can
/// be read in one direction only:
///
/// ```
///   first             window 3         window 2   window 1   before
///   |------------------[========>-------[======>---[====>-----|
/// ```
///
/// Records are read as for a subscriber: from memory, from storage, or, in a compact topic, the newest of each key.
// @unchecked: belongs to its loop.
final class RecordScan: @unchecked Sendable {
  /// The approximate number of bytes to search before the loop serves its connections.
  private static let portion = 256 << 10
  /// The number of records in the first window if records are filtered, and the most in any window.
  private static let windows: ClosedRange<UInt64> = 256...65_536

  private let topic: Topic
  private let epoch: TopicEpoch
  private let query: RecordQuery
  private let loop: any EventLoop
  private let completion: @Sendable (Result<RecordPage, WireError>) -> Void

  private let hint = SegmentHint()
  private var source: RecordSource
  /// The time of the last time mark.
  private var time: Int64 = 0
  private var page = RecordPage()
  /// The end of the present walk: it stops before this offset.
  private var limit: UInt64
  /// The records found in the present walk.
  private var found = FoundRecords()
  /// The offset after the last searched record; and whether the page has no room for the record there.
  private var next: UInt64 = 0
  private var isFull = false
  /// The number of bytes at which the search ends.
  private var mostBytes: Int

  // Towards older records.
  private var isBackward = false
  private var window: UInt64 = 0
  private var windowStart: UInt64 = 0
  /// The records found in earlier walks, which are newer.
  private var newer = FoundRecords()
  private var hasWindow = false

  init(
    _ topic: Topic, _ query: RecordQuery, on loop: any EventLoop,
    _ completion: @escaping @Sendable (Result<RecordPage, WireError>) -> Void
  ) {
    self.topic = topic
    self.query = query
    self.loop = loop
    self.completion = completion
    epoch = topic.epoch
    source = RecordSource(epoch, at: LogCursor(unplacedAt: 0))
    let kept = epoch.kept()
    page.firstOffset = kept.firstOffset
    page.nextOffset = kept.head
    limit = kept.head
    mostBytes = query.scannedBytes
  }

  // MARK: Where to look

  func begin() {
    switch query.start {
    case .from(let start):
      let position = StartPosition(start)
      if case .time(let time) = position, epoch.needsStore(for: position), let storage = epoch.storage {
        return storage.service.find(time, in: storage) { [self, loop] offset in
          loop.execute { self.beginForward(at: offset) }
        }
      }
      beginForward(at: epoch.cursor(at: position, now: loop.wallClock).cursor.nextOffset)
    case .before(let offset):
      isBackward = true
      let end = max(min(offset ?? .max, page.nextOffset), page.firstOffset)
      page.through = end
      page.from = end
      let passesNone = !query.isFilter && epoch.newest == nil
      window = passesNone ? UInt64(max(query.count, 1)) : Self.windows.lowerBound
      beginWindow(before: end)
    }
  }

  private func beginForward(at offset: UInt64) {
    let start = min(max(offset, page.firstOffset), page.nextOffset)
    page.from = start
    walk(from: start)
  }

  private func beginWindow(before end: UInt64) {
    limit = end
    windowStart = max(page.firstOffset, end - min(window, end))
    found = FoundRecords()
    walk(from: windowStart)
  }

  private func walk(from start: UInt64) {
    let compacted = epoch.newest.map {
      CompactedReader(
        $0, before: page.nextOffset, deletionsFrom: page.nextOffset, headroom: WriteBatch.deliverHeader)
    }
    source = RecordSource(epoch, at: LogCursor(unplacedAt: start), compacted: compacted)
    next = start
    isFull = false
    goOn()
  }

  // MARK: Looking

  private func goOn() {
    var left = Self.portion
    while left > 0 {
      guard !isFull, source.nextOffset < limit else { return walked() }
      guard page.scannedBytes < mostBytes else { return exhausted() }
      let bytes = min(left, mostBytes - page.scannedBytes)
      switch source.next(demand: .max, before: limit, bytes: bytes, hint: hint) {
      case .run(let slice, let mark):
        if let mark { time = mark }
        withExtendedLifetime(slice.segment) { unsafe look(slice.bytes, from: slice.firstOffset) }
        unsafe left -= slice.bytes.count
      case .copies(let copies, _):
        _ = unsafe copies.fill { header, first, _, length in
          let room = WriteBatch.deliverHeader
          unsafe look(UnsafeRawBufferPointer(start: header + room, count: length), from: first)
        }
        left -= copies.recordBytes
      case .passed(let bytes): left -= max(bytes, 1)
      case .lagged: break
      case .caughtUp, .demandExhausted: return walked()
      case .loading(let request): return load(request)
      }
    }
    loop.execute { self.goOn() }
  }

  private func load(_ request: StoreRequest?) {
    guard let request else { return fail() }
    request.load(of: topic.name, on: loop) { [self] records in
      source.take(records, for: request)
      guard !source.awaits(request) else { return fail() }
      goOn()
    }
  }

  private func fail() {
    completion(.failure(WireError(.storageFailed, "the store of topic \(topic.name) can't be read")))
  }

  private func look(_ bytes: UnsafeRawBufferPointer, from first: UInt64) {
    var iterator = unsafe BatchIterator(bytes, time: time)
    var offset = first
    while !isFull, offset < limit, let record = try? iterator.next() {
      let isWanted = query.matches(record)
      if isWanted, !isBackward {
        guard unsafe found.hasRoom(for: record.body.count, within: query) else {
          isFull = true
          break
        }
      }
      page.scannedRecords += 1
      unsafe page.scannedBytes += RecordLayout.wordSize + record.body.count
      offset += 1
      next = offset
      guard isWanted, let copy = RecordSnapshot(record, at: offset - 1) else { continue }
      unsafe found.append(copy, bytes: record.body.count)
      if isBackward { found.dropOldest(within: query) } else { isFull = found.records.count >= query.count }
    }
    time = iterator.time
  }

  // MARK: Ending

  /// Ends a walk that has reached its limit or filled the page.
  private func walked() {
    guard isBackward else {
      page.through = isFull ? next : limit
      return finish(found)
    }
    hasWindow = true
    page.from = windowStart
    newer.prepend(found, within: query)
    if let cut = newer.droppedThrough { page.from = cut }
    if newer.droppedThrough != nil || newer.records.count >= query.count || windowStart <= page.firstOffset {
      return finish(newer)
    }
    // In a compact topic most offsets of a window may have no record.
    window = epoch.newest == nil ? min(window * 4, Self.windows.upperBound) : min(window, .max / 4) * 4
    loop.execute { [self] in beginWindow(before: windowStart) }
  }

  /// Ends a walk that has searched as many bytes as allowed.
  private func exhausted() {
    guard isBackward else {
      page.isCut = true
      page.through = next
      return finish(found)
    }
    // The records found in this window don't adjoin those of the earlier windows, so the page can't contain them.
    if hasWindow || window <= 1 {
      page.isCut = true
      return finish(newer)
    }
    // The records are so long that a window exceeds the limit: tries a smaller one. At most three attempts.
    mostBytes = page.scannedBytes + max(query.scannedBytes, 1)
    window = max(window / 16, 1)
    beginWindow(before: limit)
  }

  private func finish(_ found: FoundRecords) {
    page.records = found.records
    completion(.success(page))
  }
}

/// Records for a page, within the query's limits.
private struct FoundRecords {
  private(set) var records: [RecordSnapshot] = []
  private var sizes: [Int] = []
  private var bytes = 0
  /// The offset after the newest record that was found and then dropped because the page had no room.
  private(set) var droppedThrough: UInt64?

  /// The first record always fits.
  func hasRoom(for size: Int, within query: RecordQuery) -> Bool {
    records.isEmpty || bytes + size <= query.bytes && records.count < query.count
  }

  mutating func append(_ record: RecordSnapshot, bytes size: Int) {
    records.append(record)
    sizes.append(size)
    bytes += size
  }

  mutating func dropOldest(within query: RecordQuery) {
    while records.count > 1, records.count > query.count || bytes > query.bytes {
      droppedThrough = records.removeFirst().offset + 1
      bytes -= sizes.removeFirst()
    }
  }

  /// Adds older records, as many as fit.
  mutating func prepend(_ older: FoundRecords, within query: RecordQuery) {
    records = older.records + records
    sizes = older.sizes + sizes
    bytes += older.bytes
    droppedThrough = older.droppedThrough
    dropOldest(within: query)
  }
}
