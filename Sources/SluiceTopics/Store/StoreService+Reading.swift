import SluiceIO
import SluiceLog
import SluiceStore
import SluiceWire
import Synchronization

/// The result of reading stored records for a subscriber that needs records older than those in memory.
package struct StoredRecords: Sendable {
  /// Nil if no records could be read.
  package var segment: LoadedSegment?
  /// The offset of the first record that exists; higher than the requested one if records were dropped or are damaged.
  package var next: UInt64
  /// The store couldn't be read, so its contents are unknown.
  var isFailure = false
}

/// A segment that was read from storage. It counts towards ``StoreService/loadedBytes`` as long as it exists.
package final class LoadedSegment: Sendable {
  package let segment: Segment
  private let service: StoreService

  fileprivate init(_ segment: Segment, _ service: StoreService) {
    self.segment = segment
    self.service = service
    service.loadedBytes.add(segment.bytes, ordering: .relaxed)
  }

  deinit {
    service.loadedBytes.subtract(segment.bytes, ordering: .relaxed)
  }
}

/// Copies batches of one topic into a segment.
// @unchecked: belongs to one read, which makes one call after another.
private final class BatchLoading: @unchecked Sendable {
  private let topic: TopicID
  private let offset: UInt64
  private let bytes: Int
  private let pool: SegmentPool
  private var loader: SegmentLoader?
  /// The offset of the first batch that can't be read, if it precedes all readable ones.
  private(set) var damaged: UInt64?

  init(_ topic: TopicID, from offset: UInt64, bytes: Int, pool: SegmentPool) {
    self.topic = topic
    self.offset = offset
    self.bytes = bytes
    self.pool = pool
  }

  var isEmpty: Bool { loader == nil }

  /// Returns whether there is room for more batches.
  func take(_ first: UInt64, _ value: UnsafeRawBufferPointer) -> Bool {
    guard let batch = unsafe BatchView(value, of: topic, at: first) else {
      // The batches after it are read by the next request, if this one already has some.
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

  func finish() -> Segment? { loader?.finish() }
}

extension StoreService {
  /// Reads about `bytes` bytes of records from that offset on, and passes them to `completion` on `loop`.
  package func load(
    _ storage: StoreTopicState, _ topic: String, from offset: UInt64, bytes: Int, on loop: any EventLoop,
    _ completion: @escaping @Sendable (StoredRecords) -> Void
  ) {
    read(storage.id) { [self] store in
      let loading = BatchLoading(storage.id, from: offset, bytes: bytes, pool: pool)
      unsafe store.read(
        storage.id, from: offset, bytes: bytes, each: { unsafe loading.take($0, $1) }
      ) { [self] error in
        let records = loaded(loading, error, storage, topic, from: offset)
        loop.execute { completion(records) }
      }
    }
  }

  private func loaded(
    _ loading: BatchLoading, _ error: StoreError?, _ storage: StoreTopicState, _ topic: String,
    from offset: UInt64
  ) -> StoredRecords {
    // Records read before an error are used.
    if let error, loading.isEmpty {
      lost(topic, error.message)
      return StoredRecords(segment: nil, next: offset, isFailure: true)
    }
    let segment = loading.finish()
    let next = segment.map { max($0.baseOffset, offset) } ?? max(storage.committed, offset + 1)
    if let damaged = loading.damaged { report(.damaged(topic: topic, from: damaged, before: next)) }
    return StoredRecords(segment: segment.map { LoadedSegment($0, self) }, next: next)
  }

  /// Finds the first record with that time or a later one that a late subscriber gets, on another thread. Passes the offset after all stored records if there
  /// is none.
  package func find(_ time: Int64, in topic: StoreTopicState, _ body: @escaping @Sendable (UInt64) -> Void) {
    read(topic.id) { store in
      // The store may still have records that the limits no longer keep. A subscriber that starts at a time doesn't miss those.
      topic.find(time, from: topic.floor(before: topic.committed), in: store) { offset, _ in body(offset) }
    }
  }
}
