import SluiceWire

/// A segment that is being filled, and what is known of it beyond what readers see. A log's are protected by its lock.
struct SegmentSummary {
  let segment: Segment

  /// Records, and bytes of memory, written.
  var records = 0
  var position = 0

  /// Bytes of the records alone, time marks not counted.
  var recordBytes = 0

  /// The time mark that is in force at the end.
  var lastTime: Int64 = .min

  /// Where the newest index entry stands; nil before the first.
  var indexedPosition: Int?

  var baseOffset: UInt64 { segment.baseOffset }
  var endOffset: UInt64 { segment.baseOffset &+ UInt64(records) }

  /// Enters the batch that comes next, whose first record has this time, into the index if it is due.
  mutating func index(at time: Int64) {
    if let indexedPosition, position - indexedPosition < IndexEntry.spacing { return }
    segment.addIndexEntry(Place(record: records, position: position, recordBytes: recordBytes, time: time))
    indexedPosition = position
  }

  /// Copies items, for which there must be room, to the end.
  mutating func copy(_ items: UnsafeRawBufferPointer, count: Int, recordBytes: Int) {
    if let source = items.baseAddress {
      unsafe (segment.memory + position).copyMemory(from: source, byteCount: items.count)
    }
    position += items.count
    records += count
    self.recordBytes += recordBytes
  }

  /// Lets readers see what was written.
  func commit() { segment.commit(records: records, position: position) }
}

/// The segments of a log, oldest first: appended at the end, dropped from the front, searched by offset or time.
struct SegmentQueue {
  // Dropped slots stay, empty, until they are half of the array: dropping is O(1) on average.
  private var slots: [SegmentSummary?] = []
  private var start = 0

  var count: Int { slots.count - start }
  var isEmpty: Bool { slots.count == start }
  var first: SegmentSummary? { isEmpty ? nil : slots[start] }

  /// The segment being filled. There must be one.
  var last: SegmentSummary {
    get { unsafe slots[slots.count - 1].unsafelyUnwrapped }
    _modify { yield &slots[slots.count - 1]! }
  }

  subscript(position: Int) -> SegmentSummary {
    unsafe slots[start + position].unsafelyUnwrapped
  }

  mutating func append(_ summary: SegmentSummary) {
    slots.append(summary)
  }

  /// Puts another one in the place of the oldest. There must be one.
  mutating func replaceFirst(by summary: SegmentSummary) { slots[start] = summary }

  /// Takes the oldest out. There must be one.
  mutating func removeFirst() -> SegmentSummary {
    let summary = unsafe slots[start].unsafelyUnwrapped
    slots[start] = nil
    start += 1
    if start * 2 >= slots.count {
      slots.removeFirst(start)
      start = 0
    }
    return summary
  }

  /// The first segment for which `isReached` holds; it must hold from there on. `count` when it holds for none.
  func firstPosition(where isReached: (SegmentSummary) -> Bool) -> Int {
    (0..<count).partition { isReached(self[$0]) }
  }

  /// The segment that holds the record with this offset.
  func segment(holding offset: UInt64) -> SegmentSummary? {
    guard !isEmpty else { return nil }
    // Readers that keep up are in the newest.
    if offset >= last.baseOffset { return offset < last.endOffset ? last : nil }
    guard offset >= self[0].baseOffset else { return nil }
    return self[firstPosition { $0.endOffset > offset }]
  }
}
