import SluiceLog
import SluiceStore
import SluiceWire

/// Decides which of a durable topic's oldest batches its limits no longer keep. A value: its input is the stored batches, its output the offset at which to
/// cut.
///
/// Batches are dropped whole, so a topic may exceed its limits by up to one batch.
package struct StoreRetention {
  /// The properties of an old batch that the limits need.
  package struct Batch: Hashable {
    var endOffset: UInt64
    /// Bytes of the topic's records up to the batch's end.
    package var bytesThrough: UInt64
    var lastTime: Int64

    init(endOffset: UInt64, bytesThrough: UInt64, lastTime: Int64) {
      self.endOffset = endOffset
      self.bytesThrough = bytesThrough
      self.lastTime = lastTime
    }

    /// Nil for a header that can't be from that topic, such as a damaged one.
    init?(_ header: BatchHeader, in extent: StoredExtent) {
      let bytesThrough = header.bytesBefore.addingReportingOverflow(UInt64(header.recordBytes))
      guard !bytesThrough.overflow, bytesThrough.partialValue <= extent.bytesThrough,
        header.endOffset <= extent.head
      else { return nil }
      self.init(
        endOffset: header.endOffset, bytesThrough: bytesThrough.partialValue, lastTime: header.lastTime)
    }
  }

  var retention: Retention
  /// The clock of the topic's records.
  var clock = RecordClock()
  /// The oldest batches read so far.
  private var batches: [Batch] = []
  private var start = 0
  /// Whether the limits drop all of those, so that more batches must be read.
  private var isExhausted = true

  init(_ retention: Retention) {
    self.retention = retention
  }

  /// Whether ``cut(_:now:)`` needs more of the oldest batches.
  func wantsBatches(_ extent: StoredExtent, now: Int64) -> Bool {
    guard isExhausted, extent.firstOffset < extent.head else { return false }
    if let limit = retention.bytes, extent.bytes > limit { return true }
    return retention.ageMilliseconds != nil
  }

  /// Adds the batches that follow.
  package mutating func take(_ more: [Batch]) {
    batches = batches[start...] + more
    start = 0
  }

  /// The offset at which the limits cut a topic off.
  package struct Cut {
    /// The offset of the first record that is kept.
    package var offset: UInt64
    /// The number of bytes before that offset, as far as known.
    package var bytes: UInt64
    /// The limit that cuts there; nil if all records are kept.
    package var cause: DroppedRecords.Cause?
  }

  /// Returns the offset before which the limits keep no records at this time.
  ///
  /// - Parameter extent: the stored records, including those about to be added.
  mutating func cut(_ extent: StoredExtent, now: Int64) -> Cut {
    var cut = Cut(offset: extent.firstOffset, bytes: extent.bytesBefore)
    if let limit = retention.records {
      let offset = extent.head - min(limit, extent.head)
      if offset > cut.offset { (cut.offset, cut.cause) = (offset, .records) }
    }
    // Starts at the front each time: a reader may have kept batches that the limits could have dropped.
    while start < batches.count, batches[start].endOffset <= extent.firstOffset { start += 1 }
    var next = start
    while next < batches.count {
      let batch = batches[next]
      // The batches of a failed commit are known here, but aren't stored.
      guard batch.endOffset <= extent.head else { break }
      if batch.endOffset > cut.offset {
        guard let limit = limit(outdating: batch, extent, now) else { break }
        (cut.offset, cut.cause) = (batch.endOffset, limit)
      }
      cut.bytes = batch.bytesThrough
      next += 1
    }
    isExhausted = next == batches.count
    return cut
  }

  /// The end of the last batch that lies completely before that offset; the extent's first offset if there is none. Batches are dropped whole.
  package func end(ofWholeBatchesBefore offset: UInt64, _ extent: StoredExtent) -> UInt64 {
    var end = extent.firstOffset
    for batch in batches[start...] {
      guard batch.endOffset <= min(offset, extent.head) else { break }
      end = max(end, batch.endOffset)
    }
    return end
  }

  private func limit(outdating batch: Batch, _ extent: StoredExtent, _ now: Int64) -> DroppedRecords.Cause? {
    let behind = extent.bytesThrough - min(batch.bytesThrough, extent.bytesThrough)
    if let limit = retention.bytes, behind >= limit { return .bytes }
    if let cutoff = retention.cutoff(at: now),
      clock.time(batch.lastTime, before: batch.endOffset) < cutoff
    {
      return .age
    }
    return nil
  }
}
