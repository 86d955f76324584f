import SluiceLog
import SluiceStore
import SluiceWire
import Synchronization

// How a compact topic is stored: in batches like any topic. Before a batch is dropped, each of its records that is still the newest of its key is stored by
// itself, as a state. See ``StoredNewest``.
extension StoreTopicState {
  /// About the most bytes of records that a commit copies from batches into states.
  private static let carried = 1 << 20

  /// Adds to a commit the changes that the newest records need: removal of records that were replaced or dropped, copies of records whose batches are to be
  /// dropped, and the truncation.
  ///
  /// With the topic's lock held, so that every record that has replaced a stored one is stored itself, or in this commit.
  func addNewest(to change: inout TopicChange) {
    guard let newest else { return }
    let changes = newest.takeStorageChanges(
      before: committed, bytesThrough: bytesThrough, portion: Self.carried
    ) { record in
      unsafe change.states.append(StoredNewest.change(record.item, at: record.offset, time: record.time))
    }
    for offset in changes.gone { change.states.append(StoredNewest.removal(at: offset)) }
    if let marks = changes.marks {
      change.states.append(
        StoredNewest.change(
          carriedBefore: marks.carriedBefore, keptFrom: marks.keptFrom, deletionsFrom: marks.deletionsFrom))
    }
    if changes.carriedBefore > firstOffset { change.truncateBefore = changes.carriedBefore }
  }

  /// Whether the newest records need a commit even though the topic has no other changes.
  var hasNewestChanges: Bool {
    newest?.hasStorageChanges(
      before: committed, bytesThrough: bytesThrough) ?? false
  }

  /// Restores the newest records: those stored by themselves, and those in batches.
  ///
  /// - Parameters:
  ///   - topic: the topic's name, for reports.
  ///   - states: all of kind ``StoredState/Kind/newest``, in order.
  ///   - wallClock: the present time, in milliseconds since 1970.
  ///   - done: called once, possibly before this returns, with the error if the store couldn't be read.
  func restoreNewest(
    _ topic: String, _ states: [StoredState], wallClock: Int64,
    _ done: @escaping @Sendable (StoreError?) -> Void
  ) {
    guard let newest else { return done(nil) }
    let restoration = NewestRestoration(newest, topic, self)
    restoration.take(states)
    unsafe service.store.read(
      id, from: restoration.nextOffset, bytes: 4 << 20, each: { unsafe restoration.take($0, $1) }
    ) { error in
      if error == nil { restoration.finish(wallClock: wallClock) }
      done(error)
    }
  }
}

/// Assembles a compact topic's newest records from stored states and batches.
// @unchecked: belongs to one read, which makes one call after another.
private final class NewestRestoration: @unchecked Sendable {
  private let newest: CompactedRecords
  private let topic: String
  private let storage: StoreTopicState
  /// The offset of the next record to restore.
  private(set) var nextOffset: UInt64
  /// The end of the unreadable records; 0 if all could be read.
  private var lostBefore: UInt64 = 0

  init(_ newest: CompactedRecords, _ topic: String, _ storage: StoreTopicState) {
    self.newest = newest
    self.topic = topic
    self.storage = storage
    nextOffset = storage.birthExtent.firstOffset
  }

  /// Restores the records that are stored by themselves.
  func take(_ states: [StoredState]) {
    var marks: CompactedRecords.Marks?
    var records: [StoredNewest.Record] = []
    for state in states {
      do throws(StoreError) {
        switch try StoredNewest.decode(key: state.key, value: state.value) {
        case .marks(let carriedBefore, let keptFrom, let deletionsFrom):
          marks = CompactedRecords.Marks(
            carriedBefore: carriedBefore, keptFrom: keptFrom, deletionsFrom: deletionsFrom)
        case .record(let record): records.append(record)
        }
      } catch {
        storage.service.lost(topic, error.message)
      }
    }
    let extent = storage.birthExtent
    newest.beginRestoring(marks, batchesFrom: extent.firstOffset, bytesBefore: extent.bytesBefore)
    if let marks { nextOffset = min(marks.carriedBefore, extent.head) }
    // Records from that offset on are in the batches.
    for record in records where record.offset < nextOffset {
      unsafe record.item.withUnsafeBytes { unsafe newest.restore($0, at: record.offset, time: record.time) }
    }
    // The batches between the copied records and the first stored batch are missing.
    if nextOffset < extent.firstOffset { lose(before: extent.firstOffset) }
  }

  /// Restores a batch. Returns whether another one is needed.
  func take(_ first: UInt64, _ value: UnsafeRawBufferPointer) -> Bool {
    guard let batch = unsafe BatchView(value, of: storage.id, at: first) else { return true }
    if first > nextOffset { lose(before: first) }
    let end = unsafe StoredNewest.forEachRecord(
      in: batch.items, at: first, time: batch.header.firstTime, from: nextOffset
    ) { item, offset, time in unsafe newest.restore(item, at: offset, time: time) }
    nextOffset = max(nextOffset, end)
    return nextOffset < storage.birthExtent.head
  }

  /// Completes the restoration after the last batch.
  func finish(wallClock: Int64) {
    let extent = storage.birthExtent
    if nextOffset < extent.head { lose(before: extent.head) }
    newest.finishRestoring(
      head: extent.head, time: extent.lastTime, now: wallClock, lostBefore: lostBefore)
  }

  private func lose(before offset: UInt64) {
    storage.service.report(.damaged(topic: topic, from: nextOffset, before: offset))
    (nextOffset, lostBefore) = (offset, offset)
  }
}
