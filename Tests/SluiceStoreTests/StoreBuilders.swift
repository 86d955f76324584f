import SluiceStore
import SluiceWire

/// A stored record: its length and its payload.
func item(_ payload: [UInt8]) -> [UInt8] {
  withUnsafeBytes(of: UInt32(payload.count).littleEndian) { Array($0) } + payload
}

/// A sealed batch.
///
/// - Parameter records: payloads with non-decreasing timestamps.
func sealed(
  _ records: [(payload: [UInt8], time: Int64)], for topic: TopicID, at offset: UInt64, bytesBefore: UInt64
) -> BatchBlock {
  let block = BatchBlock(firstOffset: offset, bytesBefore: bytesBefore)
  for record in records {
    _ = item(record.payload).withUnsafeBytes { block.append($0, count: 1, time: record.time) }
  }
  block.seal(for: topic)
  return block
}

extension TopicStore {
  /// Commits a topic's row and one batch for each payload.
  func add(_ topic: TopicID, row: StoredTopic? = nil, payloads: [[UInt8]] = [], time: Int64 = 1) throws {
    var change = TopicChange(topic)
    change.row = row
    let extent = try extent(of: topic) ?? StoredExtent()
    var head = extent.head
    var bytes = extent.bytesThrough
    for payload in payloads {
      let batch = sealed([(payload, time)], for: topic, at: head, bytesBefore: bytes)
      change.batches.append(batch)
      head = batch.endOffset
      bytes = batch.bytesThrough
    }
    try commit([change])
  }

  /// The stored batches from an offset on, with their stored offsets.
  func stored(_ topic: TopicID, from offset: UInt64 = 0) throws -> [StoredBatch] {
    var found: [StoredBatch] = []
    try batches(of: topic, from: offset) { offset, bytes in
      found.append(StoredBatch(offset: offset, bytes: Array(bytes)))
      return true
    }
    return found
  }
}

struct StoredBatch: Hashable {
  var offset: UInt64
  var bytes: [UInt8]
}

extension StoredTopic {
  static func named(_ name: String, epoch: UInt64 = 1) -> StoredTopic {
    StoredTopic(name: name, settings: TopicSettings(replayRecords: 10), epoch: epoch)
  }
}
