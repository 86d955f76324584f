extension RecordLayout {
  /// Checks a batch that a producer sent: its items fill it exactly, there are `count` of them, all are records,
  /// none is longer than `maximumRecord` bytes of body, and attributes are what they say.
  ///
  /// This is the one time that the broker looks at records; afterwards lengths are trusted.
  ///
  /// A batch is taken whole or refused whole.
  ///
  /// - Throws: ``ErrorCode/malformedBatch`` or ``ErrorCode/recordTooLarge``, with the record's number in the batch, from 0.
  public static func validate(
    _ batch: UnsafeRawBufferPointer, count: UInt32, maximumRecord: Int
  ) throws(WireError) {
    guard count > 0 else { throw WireError(.malformedBatch, "a batch must have at least one record") }
    guard let base = batch.baseAddress else {
      throw WireError(.malformedBatch, "the batch announces \(count) records and is empty")
    }
    let end = batch.count
    // One comparison distinguishes the common record, plain and not too long, from all items that need a closer look.
    let uncommon = UInt32(clamping: min(maximumRecord, maximumBody))
    var position = 0
    var records: UInt32 = 0
    while end &- position >= wordSize {
      let first = unsafe word(at: base + position)
      if first > uncommon {
        try unsafe checkUncommon(
          base + position, first, available: end - position, record: records, maximumRecord)
        position &+= wordSize &+ length(first)
        records &+= 1
        continue
      }
      // Records of one length mostly follow each other. Along such a run the next position doesn't depend on a load, only the guess
      // that the run continues does: this takes a third of the time of following each length.
      let size = wordSize &+ Int(first)
      repeat {
        position &+= size
        records &+= 1
      } while unsafe end &- position >= wordSize && word(at: base + position) == first
    }
    guard position == end else {
      // The walk stops ahead of a word that isn't whole, or behind a body that isn't.
      throw cutShort(record: position < end ? records : records - 1)
    }
    guard records == count else {
      throw WireError(.malformedBatch, "the batch announces \(count) records and has \(records)")
    }
  }

  /// How many bytes of a batch are in front of its last record.
  ///
  /// For a batch that ``validate(_:count:maximumRecord:)`` has taken. Of any other the result means nothing, and nothing outside is read.
  public static func startOfLastRecord(in batch: UnsafeRawBufferPointer) -> Int {
    guard let base = batch.baseAddress else { return 0 }
    var start = 0
    var position = 0
    while batch.count &- position >= wordSize {
      start = position
      position &+= unsafe itemSize(word(at: base + position))
    }
    return start
  }

  /// The records at the start of checked items that fit into so many bytes. `orFirst` takes the first one even if it doesn't fit.
  package static func prefix(
    of items: UnsafeRawBufferPointer, fitting room: Int, orFirst: Bool = false
  ) -> (bytes: Int, records: Int) {
    guard let base = items.baseAddress else { return (0, 0) }
    var taken = (bytes: 0, records: 0)
    while taken.bytes < items.count {
      let next = unsafe taken.bytes + itemSize(word(at: base + taken.bytes))
      guard next <= room || orFirst && taken.records == 0 else { break }
      taken = (next, taken.records + 1)
    }
    return taken
  }

  @inline(never)
  private static func checkUncommon(
    _ item: UnsafeRawPointer, _ word: UInt32, available: Int, record: UInt32, _ maximumRecord: Int
  ) throws(WireError) {
    let length = length(word)
    guard isRecord(word) else {
      throw WireError(
        .malformedBatch,
        "record \(record) of the batch has kind \(word >> kindShift), which producers may not send")
    }
    guard length <= maximumRecord else {
      throw WireError(
        .recordTooLarge, "record \(record) of the batch has \(length) bytes; the limit is \(maximumRecord)")
    }
    guard kind(word) == .attributed else { return }
    guard length <= available - wordSize else {
      throw cutShort(record: record)
    }
    do {
      _ = try unsafe RecordAttributes(UnsafeRawBufferPointer(start: item + wordSize, count: length))
    } catch {
      throw WireError(error.code, "record \(record) of the batch: \(error.message)")
    }
  }

  private static func cutShort(record: UInt32) -> WireError {
    WireError(.malformedBatch, "the batch is cut short within record \(record)")
  }
}
