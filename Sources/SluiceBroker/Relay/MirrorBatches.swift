import SluiceLog
import SluiceWire

/// Appends the batches of another node's topic to a log of this node, with the same offsets, bytes and times.
struct MirrorBatches {
  /// The time of the last time mark.
  private var time: Int64 = 0

  /// Appends a batch as it was delivered. Its lengths are checked, since it comes from another process.
  ///
  /// - Throws: ``ErrorCode/malformedBatch``; a part of the batch may have been appended before.
  mutating func append(_ batch: UnsafeRawBufferPointer, count: UInt32, to log: TopicLog) throws(WireError) {
    guard let start = batch.baseAddress else { return }
    var (run, records, total) = (0, 0, 0)
    var position = 0
    /// Appends the records since the last mark.
    func close(at end: Int) {
      guard records > 0 else { return }
      unsafe log.append(UnsafeRawBufferPointer(rebasing: batch[run..<end]), count: records, at: time)
      records = 0
    }
    while position < batch.count {
      guard batch.count - position >= RecordLayout.wordSize else { throw Self.malformed }
      let word = unsafe RecordLayout.word(at: start + position)
      let end = position + RecordLayout.itemSize(word)
      guard end <= batch.count else { throw Self.malformed }
      if RecordLayout.isRecord(word) {
        records += 1
        total += 1
      } else {
        guard RecordLayout.kind(word) == .timeMark, end - position == RecordLayout.timeMarkSize else {
          throw Self.malformed
        }
        close(at: position)
        time = unsafe RecordLayout.time(ofMarkAt: start + position)
        run = end
      }
      position = end
    }
    guard total == Int(count) else { throw Self.malformed }
    close(at: position)
  }

  private static var malformed: WireError {
    WireError(.malformedBatch, "a batch of another node contradicts its lengths or its count")
  }
}
