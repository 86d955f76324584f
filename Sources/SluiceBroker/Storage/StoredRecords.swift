import SluiceIO
import SluiceLog
import SluiceStore
import Synchronization

/// What was read from storage for somebody who catches up.
struct StoredRecords: Sendable {
  /// Nil when there was nothing that could be read.
  var segment: Segment?
  /// The offset of the first record that is there; beyond the one asked for when some are gone, or damaged.
  var next: UInt64
  /// The store couldn't be read. Nothing is known of what is there.
  var isFailure = false
}

extension StorageService {
  /// Reads records from that offset on, about so many bytes, and hands them over on `loop`. Those who get a segment note in
  /// ``loadedBytes`` when they let go of it.
  func load(
    _ storage: TopicStorage, _ topic: String, from offset: UInt64, bytes: Int, on loop: any EventLoop,
    _ completion: @escaping @Sendable (StoredRecords) -> Void
  ) {
    read(storage.id) { [self] _ in
      let records = load(storage, topic, from: offset, bytes: bytes)
      if let segment = records.segment { loadedBytes.add(segment.bytes, ordering: .relaxed) }
      loop.execute { completion(records) }
    }
  }

  /// The same, at once. On a reader's thread.
  private func load(
    _ storage: TopicStorage, _ topic: String, from offset: UInt64, bytes: Int
  ) -> StoredRecords {
    var loader: SegmentLoader?
    var damaged: UInt64?
    do throws(StoreError) {
      try unsafe store.batches(of: storage.id, from: offset) { first, value in
        guard let batch = unsafe BatchView(value, of: storage.id, at: first) else {
          // What is behind it is for the next time, if there is anything to hand over.
          if damaged == nil, loader == nil { damaged = max(first, offset) }
          return loader == nil
        }
        if loader == nil {
          loader = unsafe SegmentLoader(
            baseOffset: first, capacity: max(bytes, batch.items.count), pool: pool)
        }
        guard let room = loader?.room, first == loader?.nextOffset, unsafe batch.items.count <= room else {
          return false
        }
        unsafe loader?.append(
          batch.items, count: Int(batch.header.records), recordBytes: Int(batch.header.recordBytes),
          firstTime: batch.header.firstTime)
        return true
      }
    } catch {
      // What was read before is good.
      guard loader != nil else {
        lost(topic, error.message)
        return StoredRecords(segment: nil, next: offset, isFailure: true)
      }
    }
    let segment = loader?.finish()
    let next = segment.map { max($0.baseOffset, offset) } ?? max(storage.committed, offset + 1)
    if let damaged { report(.damaged(topic: topic, from: damaged, before: next)) }
    return StoredRecords(segment: segment, next: next)
  }
}
