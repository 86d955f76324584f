import SluiceWire

extension LogCursor {
  /// How many records are rather stepped over than looked up.
  private static let stride: UInt64 = 64

  /// Moves ahead of the record with this offset, wherever that is. From any thread, for different cursors.
  ///
  /// A few records on in a segment that is at hand, it steps over them; otherwise the place is found with the next read.
  ///
  /// - Parameter hint: a segment of the cursor's log in which it may be.
  public mutating func move(to offset: UInt64, hint: Segment?) {
    if offset == nextOffset { return }
    guard offset > nextOffset, offset - nextOffset <= Self.stride, let hint, hint.baseOffset == segmentBase,
      offset - hint.baseOffset <= UInt64(hint.end.records)
    else {
      self = LogCursor(unplacedAt: offset)
      return
    }
    while nextOffset < offset {
      let item = unsafe hint.memory + position
      let word = unsafe RecordLayout.word(at: item)
      if RecordLayout.isRecord(word) {
        nextOffset &+= 1
      } else {
        // It has to be told when the next record is.
        pendingTimeMark = unsafe RecordLayout.time(ofMarkAt: item)
      }
      position &+= RecordLayout.itemSize(word)
    }
  }
}
