import SluiceWire

/// Checks one stored batch in full.
enum BatchCheck {
  /// Returns the problem; nil for a sound batch. The header is nil if it can't be trusted.
  static func check(
    _ bytes: UnsafeRawBufferPointer, of topic: TopicID, at offset: UInt64
  ) -> (header: BatchHeader?, problem: StoreFinding.Problem?) {
    guard bytes.count > BatchHeader.size, let base = bytes.baseAddress else {
      return (nil, .batchTooShort(bytes: bytes.count))
    }
    let checksum = unsafe UInt64(littleEndian: base.loadUnaligned(as: UInt64.self))
    guard unsafe checksum == BatchView.checksum(of: bytes, topic) else { return (nil, .batchChecksum) }
    let header = unsafe BatchHeader(at: base)
    guard header.firstOffset == offset else { return (nil, .batchMisplaced(says: header.firstOffset)) }
    let items = unsafe UnsafeRawBufferPointer(rebasing: bytes[BatchHeader.size...])
    return unsafe (header, contents(header, items))
  }

  /// Compares items with their header.
  static func contents(_ header: BatchHeader, _ items: UnsafeRawBufferPointer) -> StoreFinding.Problem? {
    guard header.records > 0 else { return .batchRecords(says: 0, has: 0) }
    guard !header.firstOffset.addingReportingOverflow(UInt64(header.records)).overflow,
      !header.bytesBefore.addingReportingOverflow(UInt64(header.recordBytes)).overflow
    else { return .batchItems("its numbers are larger than any that were given") }
    var walk = unsafe Walk(items)
    if let problem = walk.run() { return problem }
    guard walk.records == UInt64(header.records) else {
      return .batchRecords(says: header.records, has: walk.records)
    }
    guard walk.bytes == UInt64(header.recordBytes) else {
      return .batchBytes(says: header.recordBytes, has: walk.bytes)
    }
    guard walk.firstTime == header.firstTime, walk.lastTime == header.lastTime else {
      return .batchTimes("its header has other times than its records")
    }
    return nil
  }

  private struct Walk {
    var iterator: BatchIterator
    let isMarked: Bool
    var records: UInt64 = 0
    var bytes: UInt64 = 0
    var firstTime = Int64.min
    var lastTime = Int64.min

    init(_ items: UnsafeRawBufferPointer) {
      iterator = unsafe BatchIterator(items, time: .min)
      isMarked =
        unsafe items.count >= RecordLayout.wordSize
        && !RecordLayout.isRecord(RecordLayout.word(at: items.baseAddress!))
    }

    mutating func run() -> StoreFinding.Problem? {
      do throws(WireError) {
        while let record = try iterator.next() {
          guard isMarked else { return .batchTimes("its first record has no time") }
          guard records == 0 || record.time >= lastTime else {
            return .batchTimes("record \(records) of it is older than the one before")
          }
          if record.isAttributed { _ = try unsafe RecordAttributes(record.body) }
          if records == 0 { firstTime = record.time }
          lastTime = record.time
          records += 1
          unsafe bytes += UInt64(RecordLayout.wordSize + record.body.count)
        }
        return nil
      } catch {
        return .batchItems("record \(records) of it: \(error.message)")
      }
    }
  }
}

extension BatchView {
  /// Returns a batch with the checksum of that topic. - Parameter value: at least eight bytes.
  package static func sealed(_ value: [UInt8], for topic: TopicID) -> [UInt8] {
    var value = value
    unsafe value.withUnsafeMutableBytes { bytes in
      let checksum = unsafe checksum(of: UnsafeRawBufferPointer(bytes), topic)
      unsafe bytes.storeBytes(of: checksum.littleEndian, as: UInt64.self)
    }
    return value
  }
}
