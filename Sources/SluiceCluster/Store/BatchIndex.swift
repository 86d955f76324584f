import SluiceStore

/// The known places of a topic's batches in the stream: from some offset on to the head, and possibly from the first offset to another one.
///
/// ```
///    first offset ..... front ..... (unknown) ..... back ..... head
/// ```
///
/// After opening, the back begins with the changes behind the last front message. Earlier places are looked up when they are needed.
///
/// The back has less than ``most`` entries, however much is stored: pairs of old entries are joined. A topic then drops the batches of such an entry
/// together.
struct BatchIndex: Sendable {
  /// One batch, or several that follow each other.
  struct Entry: Sendable {
    var header: BatchHeader
    /// The sequence of the first message of the change that contains it; 0 until that is sent.
    var sequence: UInt64
  }

  private(set) var front: [Entry] = []
  private(set) var back: [Entry] = []
  private let most: Int

  /// - Parameter most: the number of entries at which pairs in the older half are joined. Larger than twice the batches in progress.
  init(most: Int = 8_192) {
    self.most = most
  }

  /// Adds a batch behind the last one.
  mutating func append(_ entry: Entry) {
    back.append(entry)
    if back.count >= most { thinOut() }
  }

  private mutating func thinOut() {
    var thinned: [Entry] = []
    thinned.reserveCapacity(most)
    let half = back.count / 2
    var index = 0
    while index < half {
      if index + 1 < half, let pair = back[index].joined(with: back[index + 1]) {
        thinned.append(pair)
        index += 2
      } else {
        thinned.append(back[index])
        index += 1
      }
    }
    back.replaceSubrange(..<half, with: thinned)
  }

  /// Sets the sequence of a change's batches when it is sent.
  mutating func place(_ offsets: Range<UInt64>, at sequence: UInt64) {
    var index = back.count
    while index > 0, back[index - 1].header.firstOffset >= offsets.lowerBound {
      index -= 1
      if back[index].header.firstOffset < offsets.upperBound { back[index].sequence = sequence }
    }
  }

  /// Adds an entry found behind the end of the front. Joins front and back when they meet.
  mutating func extendFront(_ entry: Entry) {
    if let first = back.first, entry.header.firstOffset >= first.header.firstOffset {
      back = front + back
      front = []
    } else if entry.header.firstOffset == front.last?.header.endOffset ?? entry.header.firstOffset {
      front.append(entry)
      if let first = back.first, entry.header.endOffset == first.header.firstOffset {
        back = front + back
        front = []
      }
    }
  }

  /// Removes the batches from that offset on, which aren't stored.
  mutating func remove(from offset: UInt64) {
    while let last = back.last, last.header.firstOffset >= offset { back.removeLast() }
  }

  /// Removes the batches before that offset, which were dropped.
  mutating func drop(before offset: UInt64) {
    Self.drop(&front, before: offset)
    if front.isEmpty { Self.drop(&back, before: offset) }
  }

  private static func drop(_ entries: inout [Entry], before offset: UInt64) {
    let count = position(of: offset, in: entries)
    if count > 0 { entries.removeFirst(count) }
  }

  /// The index of the first entry that ends behind that offset.
  private static func position(of offset: UInt64, in entries: [Entry]) -> Int {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].header.endOffset <= offset { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The known batches, beginning with the batch of that offset. Empty if that isn't known.
  func entries(from offset: UInt64) -> ArraySlice<Entry> {
    if let first = back.first, offset >= first.header.firstOffset {
      return back[Self.position(of: offset, in: back)...]
    }
    guard let first = front.first, offset >= first.header.firstOffset else { return [] }
    return front[Self.position(of: offset, in: front)...]
  }

  /// The range of sequences that contains the message of an offset within an entry of several batches.
  func span(of entry: Entry, last: UInt64) -> ClosedRange<UInt64> {
    let next = entries(from: entry.header.endOffset).first?.sequence ?? last
    return entry.sequence...max(entry.sequence, next)
  }

  enum Cut {
    /// The topic begins at this offset.
    case at(EngineChange.Beginning)
    /// The front must first be read to beyond that offset.
    case unknown
  }

  /// The beginning of a topic after all batches that end at or before that offset are dropped.
  func cut(before offset: UInt64, _ extent: StoredExtent) -> Cut {
    if offset <= extent.firstOffset { return .at(Self.beginning(of: extent)) }
    if offset >= extent.head {
      return .at(.init(firstOffset: extent.head, bytesBefore: extent.bytesThrough))
    }
    guard let entry = entries(from: offset).first else {
      // All batches before the back are already dropped, and none of the back is.
      if let first = back.first, front.isEmpty, first.header.firstOffset == extent.firstOffset {
        return .at(Self.beginning(of: extent))
      }
      return .unknown
    }
    return .at(.init(firstOffset: entry.header.firstOffset, bytesBefore: entry.header.bytesBefore))
  }

  private static func beginning(of extent: StoredExtent) -> EngineChange.Beginning {
    .init(firstOffset: extent.firstOffset, bytesBefore: extent.bytesBefore)
  }

  /// The range of sequences that contains the message of an offset whose place isn't known.
  func gap(around offset: UInt64, floor: UInt64, last: UInt64) -> ClosedRange<UInt64> {
    let low = max(floor, front.last?.sequence ?? 0, 1)
    let high = back.first.flatMap { $0.sequence > 0 ? $0.sequence : nil } ?? last
    return low...max(low, high)
  }

  /// The sequence from which to read to extend the front.
  func frontEnd(floor: UInt64) -> UInt64 { max(front.last?.sequence ?? 0, floor, 1) }
}

extension BatchIndex.Entry {
  /// Whether the entry is too large to be read at once. Its batches are then found by bisection.
  var isLarge: Bool { header.recordBytes > 4 << 20 }

  /// One entry for this and the next one; nil if the numbers would be too large.
  fileprivate func joined(with next: Self) -> Self? {
    let (bytes, bytesOverflow) = header.recordBytes.addingReportingOverflow(next.header.recordBytes)
    let (records, recordsOverflow) = header.records.addingReportingOverflow(next.header.records)
    guard !bytesOverflow, !recordsOverflow, header.endOffset == next.header.firstOffset else { return nil }
    var joined = self
    // Times may decrease between the two.
    joined.header.lastTime = max(header.lastTime, next.header.lastTime)
    joined.header.records = records
    joined.header.recordBytes = bytes
    return joined
  }
}
