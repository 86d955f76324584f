import SluiceStore

/// Where a topic's batches are in the stream, as far as that is known: from some offset on to the head, and perhaps from the beginning on to another.
///
/// ```
///    first offset ..... front ..... (unknown) ..... back ..... head
/// ```
///
/// After opening, the back begins with the changes behind the last front message. What lies before it is found when it is asked for.
///
/// However much is stored, the back has less than ``most`` entries: pairs of old ones become one. A topic then loses what such an entry
/// has at a time.
struct BatchIndex: Sendable {
  /// One batch, or several that follow each other.
  struct Entry: Sendable {
    var header: BatchHeader
    /// The sequence of the first message of the change that has it; 0 until that is sent.
    var sequence: UInt64
  }

  private(set) var front: [Entry] = []
  private(set) var back: [Entry] = []
  private let most: Int

  /// - Parameter most: the entries at which the older half is thinned out. Larger than twice the batches that are under way.
  init(most: Int = 8_192) {
    self.most = most
  }

  /// Adds the batch behind the last one.
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

  /// The batches of a change are sent.
  mutating func place(_ offsets: Range<UInt64>, at sequence: UInt64) {
    var index = back.count
    while index > 0, back[index - 1].header.firstOffset >= offsets.lowerBound {
      index -= 1
      if back[index].header.firstOffset < offsets.upperBound { back[index].sequence = sequence }
    }
  }

  /// Adds what was found behind the front's end. Joins the two when they meet.
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

  /// The batches from that offset on aren't there.
  mutating func remove(from offset: UInt64) {
    while let last = back.last, last.header.firstOffset >= offset { back.removeLast() }
  }

  /// The batches before that offset are dropped.
  mutating func drop(before offset: UInt64) {
    Self.drop(&front, before: offset)
    if front.isEmpty { Self.drop(&back, before: offset) }
  }

  private static func drop(_ entries: inout [Entry], before offset: UInt64) {
    let count = position(of: offset, in: entries)
    if count > 0 { entries.removeFirst(count) }
  }

  /// The first entry that ends behind that offset.
  private static func position(of offset: UInt64, in entries: [Entry]) -> Int {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].header.endOffset <= offset { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Known batches from the one that holds the record with that offset. Empty where they aren't known.
  func entries(from offset: UInt64) -> ArraySlice<Entry> {
    if let first = back.first, offset >= first.header.firstOffset {
      return back[Self.position(of: offset, in: back)...]
    }
    guard let first = front.first, offset >= first.header.firstOffset else { return [] }
    return front[Self.position(of: offset, in: front)...]
  }

  /// The sequences between which the message of an offset is that lies within an entry of several batches.
  func span(of entry: Entry, last: UInt64) -> ClosedRange<UInt64> {
    let next = entries(from: entry.header.endOffset).first?.sequence ?? last
    return entry.sequence...max(entry.sequence, next)
  }

  enum Cut {
    /// The topic begins there.
    case at(EngineChange.Beginning)
    /// The front has to be known up to behind that offset first.
    case unknown
  }

  /// Where a topic begins when all batches are dropped that end at or before that offset.
  func cut(before offset: UInt64, _ extent: StoredExtent) -> Cut {
    if offset <= extent.firstOffset { return .at(Self.beginning(of: extent)) }
    if offset >= extent.head {
      return .at(.init(firstOffset: extent.head, bytesBefore: extent.bytesThrough))
    }
    guard let entry = entries(from: offset).first else {
      // Everything before the back is dropped, and nothing of it.
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

  /// The sequences between which the message of an offset must be that isn't known.
  func gap(around offset: UInt64, floor: UInt64, last: UInt64) -> ClosedRange<UInt64> {
    let low = max(floor, front.last?.sequence ?? 0, 1)
    let high = back.first.flatMap { $0.sequence > 0 ? $0.sequence : nil } ?? last
    return low...max(low, high)
  }

  /// Where reading goes on to make more of the front known.
  func frontEnd(floor: UInt64) -> UInt64 { max(front.last?.sequence ?? 0, floor, 1) }
}

extension BatchIndex.Entry {
  /// An entry that can't be read at once has its batches found by bisection.
  var isLarge: Bool { header.recordBytes > 4 << 20 }

  /// One entry for this and the next one; nil where the numbers would be too large.
  fileprivate func joined(with next: Self) -> Self? {
    let (bytes, bytesOverflow) = header.recordBytes.addingReportingOverflow(next.header.recordBytes)
    let (records, recordsOverflow) = header.records.addingReportingOverflow(next.header.records)
    guard !bytesOverflow, !recordsOverflow, header.endOffset == next.header.firstOffset else { return nil }
    var joined = self
    // Times may go back between the two.
    joined.header.lastTime = max(header.lastTime, next.header.lastTime)
    joined.header.records = records
    joined.header.recordBytes = bytes
    return joined
  }
}
