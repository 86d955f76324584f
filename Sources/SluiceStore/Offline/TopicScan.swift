/// Scans a topic's batches in order, and checks whether each is sound and continues the one before, and whether the extent agrees.
struct TopicScan {
  let topic: TopicID
  let name: String?
  /// As it is stored.
  let extent: StoredExtent?

  private(set) var batches: UInt64 = 0
  private(set) var records: UInt64 = 0
  private(set) var bytes: UInt64 = 0
  /// The sound batches at both ends.
  private(set) var first: BatchHeader?
  private(set) var last: BatchHeader?
  /// Where the oldest batch is stored, sound or not.
  private var firstKey: UInt64?
  /// An offset that no record of any batch has reached, however its header was spoilt.
  private var bound: UInt64 = 0
  /// A spoilt batch, until it is known where the next one begins.
  private var pending: (offset: UInt64, problem: StoreFinding.Problem)?
  /// Whether there was a spoilt batch behind the last sound one.
  private var isBehindSpoilt = false

  init(_ topic: TopicID, name: String?, extent: StoredExtent?) {
    self.topic = topic
    self.name = name
    self.extent = extent
  }

  private func finding(
    _ problem: StoreFinding.Problem, batch: UInt64? = nil, missing: Range<UInt64>? = nil
  ) -> StoreFinding {
    StoreFinding(problem, topic: topic, name: name, batch: batch, missing: missing)
  }

  // MARK: Batches

  /// Takes the next batch as it is stored. Returns whether its records can be used.
  mutating func take(
    _ bytes: UnsafeRawBufferPointer, at offset: UInt64, _ report: (StoreFinding) -> Void
  ) -> Bool {
    let (header, problem) = unsafe BatchCheck.check(bytes, of: topic, at: offset)
    return take(header, problem, at: offset, size: bytes.count, report) == nil
  }

  /// Processes the next batch, which was checked already. Returns why its records can't be used.
  mutating func take(
    _ header: BatchHeader?, _ problem: StoreFinding.Problem?, at offset: UInt64, size: Int,
    _ report: (StoreFinding) -> Void
  ) -> StoreFinding.Problem? {
    batches += 1
    if firstKey == nil { firstKey = offset }
    close(before: offset, report)
    var problem = problem
    if problem == nil, let last, offset < last.endOffset { problem = .batchOverlap(end: last.endOffset) }
    guard problem == nil, let header else {
      let problem = problem ?? .batchChecksum
      pending = (offset, problem)
      isBehindSpoilt = true
      // The shortest item has four bytes.
      let most = UInt64(max(size - BatchHeader.size, 4) / 4)
      bound = offset > .max - most ? .max : offset + most
      return problem
    }
    if let last { follow(header, last, report) }
    if first == nil { first = header }
    last = header
    isBehindSpoilt = false
    bound = header.endOffset
    records += UInt64(header.records)
    self.bytes += UInt64(header.recordBytes)
    return nil
  }

  private func follow(_ header: BatchHeader, _ last: BatchHeader, _ report: (StoreFinding) -> Void) {
    let isNext = header.firstOffset == last.endOffset
    if !isNext, !isBehindSpoilt {
      report(finding(.gap, missing: last.endOffset..<header.firstOffset))
    }
    let through = last.bytesThrough
    if isNext ? header.bytesBefore != through : header.bytesBefore < through {
      report(finding(.bytesBefore(says: header.bytesBefore, has: through), batch: header.firstOffset))
    }
    if header.firstTime < last.lastTime {
      report(finding(.timeGoesBack(from: last.lastTime, to: header.firstTime), batch: header.firstOffset))
    }
  }

  /// Reports a damaged batch, once the start of the next one is known.
  private mutating func close(before offset: UInt64, _ report: (StoreFinding) -> Void) {
    guard let spoilt = pending.take() else { return }
    // The records of an overlapping batch that the previous batch doesn't have.
    let from = max(spoilt.offset, last?.endOffset ?? 0)
    report(finding(spoilt.problem, batch: spoilt.offset, missing: from..<max(from, offset)))
  }

  // MARK: The end

  /// There are no more batches: sees whether the extent agrees with them.
  mutating func finish(_ report: (StoreFinding) -> Void) {
    let head = extent.map { max($0.head, last?.endOffset ?? 0) } ?? bound
    close(before: head, report)
    guard let extent else {
      // A topic without a record may have none.
      report(finding(.extentUnreadable))
      return
    }
    func compare(_ field: StoreFinding.ExtentField, _ says: UInt64, _ has: UInt64) {
      if says != has { report(finding(.extent(field, says: says, has: has))) }
    }
    compare(.firstOffset, extent.firstOffset, firstKey ?? head)
    compare(.head, extent.head, head)
    let isWhole = !isBehindSpoilt && extent.head <= (last?.endOffset ?? extent.head)
    if let last {
      if !isBehindSpoilt, extent.head > last.endOffset {
        report(finding(.gap, missing: last.endOffset..<extent.head))
      }
      let through = isWhole ? last.bytesThrough : max(last.bytesThrough, extent.bytesThrough)
      compare(.bytesThrough, extent.bytesThrough, through)
      let time = isWhole ? last.lastTime : max(last.lastTime, extent.lastTime)
      if extent.lastTime != time { report(finding(.extentTime(says: extent.lastTime, has: time))) }
    }
    if let first {
      if first.firstOffset == firstKey { compare(.bytesBefore, extent.bytesBefore, first.bytesBefore) }
    } else if firstKey == nil {
      compare(.bytesBefore, extent.bytesBefore, extent.bytesThrough)
    }
  }

  /// The extent as it has to be when the spoilt batches are gone. Offsets that were given are not given again.
  var mended: StoredExtent {
    var lost = StoredExtent()
    lost.head = bound
    return mended(extent ?? lost)
  }

  /// The same, had this extent been stored.
  func mended(_ stored: StoredExtent) -> StoredExtent {
    var extent = stored
    if let last {
      // Behind its end there may be records that were lost.
      let isWhole = stored.head <= last.endOffset
      extent.head = max(stored.head, last.endOffset)
      extent.bytesThrough = isWhole ? last.bytesThrough : max(stored.bytesThrough, last.bytesThrough)
      extent.lastTime = isWhole ? last.lastTime : max(stored.lastTime, last.lastTime)
    }
    extent.firstOffset = first?.firstOffset ?? extent.head
    extent.bytesBefore = first?.bytesBefore ?? extent.bytesThrough
    return extent
  }
}
