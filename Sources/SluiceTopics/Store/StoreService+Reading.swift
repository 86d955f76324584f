import SluiceIO
import SluiceLog
import SluiceStore
import SluiceWire
import Synchronization

/// What was read from the store for a subscriber that is behind the records in memory.
package struct StoredRecords: Sendable {
  /// Nil when there was nothing that could be read.
  package var segment: LoadedSegment?
  /// The offset of the first record that is there; beyond the one asked for when some are gone, or damaged.
  package var next: UInt64
  /// The store couldn't be read, so that nothing is known of its contents.
  var isFailure = false
}

/// A segment that was read from storage. It is counted in ``StoreService/loadedBytes`` for as long as it is held.
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

extension StoreService {
  /// Reads about so many bytes of records from that offset on, and passes them to `completion` on `loop`.
  package func load(
    _ storage: StoreTopicState, _ topic: String, from offset: UInt64, bytes: Int, on loop: any EventLoop,
    _ completion: @escaping @Sendable (StoredRecords) -> Void
  ) {
    read(storage.id) { [self] _ in
      let records = load(storage, topic, from: offset, bytes: bytes)
      loop.execute { completion(records) }
    }
  }

  /// The same, at once. On a reader's thread.
  private func load(
    _ storage: StoreTopicState, _ topic: String, from offset: UInt64, bytes: Int
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
    return StoredRecords(segment: segment.map { LoadedSegment($0, self) }, next: next)
  }

  /// Finds the first record with that time or a later one, on another thread. An offset behind all that is stored when there is none.
  package func find(_ time: Int64, in topic: StoreTopicState, _ body: @escaping @Sendable (UInt64) -> Void) {
    read(topic.id) { store in
      let found = try? store.offset(in: topic.id, atOrAfter: time)
      body(found ?? topic.committed)
    }
  }
}
