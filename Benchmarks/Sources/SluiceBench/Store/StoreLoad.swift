import Glibc
import SluiceStore
import SluiceStoreLMDB
import SluiceWire

/// Appends to a store of its own and replays from it.
struct StoreLoad {
  struct Shape {
    /// The most bytes per batch, which contains whole records.
    var batchBytes: Int
    /// Batches per commit, each of another topic.
    var batches: Int

    var bytes: Int { batchBytes * batches }
  }

  struct Result {
    /// The commits. Preparations such as building batches and their checksums aren't included.
    var append: SyncedWrites
    var recordsPerSecond: Double
    /// MB/s of replaying everything, checksums included: from memory, and from the disk.
    var warm: Double
    var cold: Double
  }

  let shape: Shape
  /// Bytes of a record's payload.
  let payload: Int
  let path: String

  func run(bytes: Int) throws -> Result {
    defer { remove() }
    var store = try LMDBStore.open(at: path)
    let topics = (1...UInt64(shape.batches)).map(TopicID.init)
    try store.commit(
      topics.map { topic in
        var change = TopicChange(topic)
        change.row = StoredTopic(name: "bench.\(topic.rawValue)", settings: TopicSettings(), epoch: 1)
        return change
      })
    let (append, records) = try append(store, topics, bytes)
    let warm = try replay(store, topics)
    try store.close()
    try RawDisk.forget("\(path)/data.mdb")
    store = try LMDBStore.open(at: path)
    let cold = try replay(store, topics)
    try store.close()
    return Result(
      append: append, recordsPerSecond: Double(records) / append.seconds, warm: warm, cold: cold)
  }

  private func append(
    _ store: LMDBStore, _ topics: [TopicID], _ bytes: Int
  ) throws -> (SyncedWrites, records: Int) {
    let perBatch = max(1, (shape.batchBytes - BatchHeader.size - RecordLayout.timeMarkSize) / (payload + 4))
    let record =
      withUnsafeBytes(of: UInt32(payload).littleEndian) { Array($0) } + Array(repeating: 7, count: payload)
    let items = Array(repeatElement(record, count: perBatch).joined())
    var appended = SyncedWrites()
    var head: UInt64 = 0
    var through: UInt64 = 0
    while appended.bytes < bytes {
      let changes = topics.map { topic in
        let block = BatchBlock(firstOffset: head, bytesBefore: through)
        _ = items.withUnsafeBytes { block.append($0, count: perBatch, time: Int64(head)) }
        block.seal(for: topic)
        var change = TopicChange(topic)
        change.batches = [block]
        return change
      }
      let start = monotonicNanoseconds()
      try store.commit(changes)
      appended.add(
        bytes: changes.reduce(0) { $0 + $1.batches[0].bytes }, duration: monotonicNanoseconds() - start)
      head += UInt64(perBatch)
      through += UInt64(items.count)
    }
    return (appended, Int(head) * topics.count)
  }

  /// Replays all topics. Returns MB/s.
  private func replay(_ store: LMDBStore, _ topics: [TopicID]) throws -> Double {
    let start = monotonicNanoseconds()
    var count = 0
    for topic in topics {
      try store.batches(of: topic, from: 0) { offset, bytes in
        guard BatchView(bytes, of: topic, at: offset) != nil else { return false }
        count += bytes.count
        return true
      }
    }
    return Double(count) / Double(monotonicNanoseconds() - start) * 1e3
  }

  private func remove() {
    for name in ["data.mdb", "data.mdb-lock", "lock", "reserve"] { unlink("\(path)/\(name)") }
    rmdir(path)
  }
}
