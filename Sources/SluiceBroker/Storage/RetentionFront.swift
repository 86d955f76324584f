import SluiceLog
import SluiceStore

/// Which of a durable topic's oldest batches its limits no longer keep. A value: what there is comes in, where to cut comes out.
///
/// Batches are dropped whole, so that up to one batch more than the limits say may be left.
struct RetentionFront {
  /// An old batch, as far as it matters here.
  struct Batch: Hashable {
    var endOffset: UInt64
    /// Bytes of the topic's records up to its end.
    var bytesThrough: UInt64
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

  private let retention: Retention
  /// The oldest batches, as far as they were looked at.
  private var batches: [Batch] = []
  private var start = 0
  /// Whether all of those may go, so that more may.
  private var isExhausted = true

  init(_ retention: Retention) {
    self.retention = retention
  }

  /// Whether it has to be told of the oldest batches to say more.
  func wantsBatches(_ extent: StoredExtent, now: Int64) -> Bool {
    guard isExhausted, extent.firstOffset < extent.head else { return false }
    if let limit = retention.bytes, extent.bytes > limit { return true }
    return retention.ageMilliseconds != nil
  }

  /// The batches behind those that it was told of.
  mutating func take(_ more: [Batch]) {
    batches = batches[start...] + more
    start = 0
  }

  /// Before which offset records aren't kept any more, at this time, and how many bytes the topic had before it, as far as that is known.
  ///
  /// - Parameter extent: what there is, with what is about to be added.
  mutating func cut(_ extent: StoredExtent, now: Int64) -> (offset: UInt64, bytes: UInt64) {
    var cut = (offset: extent.firstOffset, bytes: extent.bytesBefore)
    if let limit = retention.records { cut.offset = max(cut.offset, extent.head - min(limit, extent.head)) }
    // From the front each time: somebody may have needed what could have been dropped.
    while start < batches.count, batches[start].endOffset <= extent.firstOffset { start += 1 }
    var next = start
    while next < batches.count {
      let batch = batches[next]
      guard batch.endOffset <= cut.offset || isOutdated(batch, extent, now) else { break }
      cut = (max(cut.offset, batch.endOffset), batch.bytesThrough)
      next += 1
    }
    isExhausted = next == batches.count
    return cut
  }

  private func isOutdated(_ batch: Batch, _ extent: StoredExtent, _ now: Int64) -> Bool {
    if let limit = retention.bytes, extent.bytesThrough - batch.bytesThrough >= limit { return true }
    if let cutoff = retention.cutoff(at: now), batch.lastTime < cutoff { return true }
    return false
  }
}
