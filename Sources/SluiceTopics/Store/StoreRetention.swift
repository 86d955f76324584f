import SluiceLog
import SluiceStore
import SluiceWire

/// Which of a durable topic's oldest batches its limits no longer keep. A value: what there is comes in, where to cut comes out.
///
/// Batches are dropped whole, so that up to one batch more than the limits say may be left.
package struct StoreRetention {
  /// An old batch, as far as it matters here.
  package struct Batch: Hashable {
    var endOffset: UInt64
    /// Bytes of the topic's records up to its end.
    package var bytesThrough: UInt64
    var lastTime: Int64

    init(endOffset: UInt64, bytesThrough: UInt64, lastTime: Int64) {
      self.endOffset = endOffset
      self.bytesThrough = bytesThrough
      self.lastTime = lastTime
    }

    /// Nil for a header that can't be one of that topic's, as a damaged one may be.
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
  /// The oldest batches, as far as they were looked at.
  private var batches: [Batch] = []
  private var start = 0
  /// Whether all of those may go, so that more may.
  private var isExhausted = true

  init(_ retention: Retention) {
    self.retention = retention
  }

  /// Whether ``cut(_:now:)`` needs more of the oldest batches to decide.
  func wantsBatches(_ extent: StoredExtent, now: Int64) -> Bool {
    guard isExhausted, extent.firstOffset < extent.head else { return false }
    if let limit = retention.bytes, extent.bytes > limit { return true }
    return retention.ageMilliseconds != nil
  }

  /// Adds the batches behind those that it has.
  package mutating func take(_ more: [Batch]) {
    batches = batches[start...] + more
    start = 0
  }

  /// Where the limits cut a topic off.
  package struct Cut {
    /// The first record that is kept.
    package var offset: UInt64
    /// How many bytes the topic had before it, as far as that is known.
    package var bytes: UInt64
    /// What cuts there; nil when all records are kept.
    package var cause: DroppedRecords.Cause?
  }

  /// Before which offset records aren't kept any more, at this time.
  ///
  /// - Parameter extent: what there is, with what is about to be added.
  mutating func cut(_ extent: StoredExtent, now: Int64) -> Cut {
    var cut = Cut(offset: extent.firstOffset, bytes: extent.bytesBefore)
    if let limit = retention.records {
      let offset = extent.head - min(limit, extent.head)
      if offset > cut.offset { (cut.offset, cut.cause) = (offset, .records) }
    }
    // From the front each time: a reader may have needed what could have been dropped.
    while start < batches.count, batches[start].endOffset <= extent.firstOffset { start += 1 }
    var next = start
    while next < batches.count {
      let batch = batches[next]
      // What was to be added with a commit that failed is known here, and isn't there.
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

  /// Where the last batch ends of which nothing is kept from that offset on; the extent's beginning when there is none. Batches are dropped whole.
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
