import SluiceLog
import SluiceStore
import SluiceWire
import Synchronization

// How a compact topic is stored: its batches as those of any topic, and, before these are dropped, each record that is still the newest of its key by
// itself, as a state. See ``StoredNewest``.
extension StoreTopicState {
  /// About the most bytes of records that a commit takes out of batches.
  private static let carried = 1 << 20

  /// Adds to a commit what the newest records need of it: removals of those that were replaced or dropped, copies of those whose batches are to go, and the
  /// truncation.
  ///
  /// With the topic's lock held, so that all that has replaced a stored record is stored itself, or in this commit.
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

  /// Whether the newest records need a commit, though nothing else of the topic is to be stored.
  var hasNewestChanges: Bool {
    newest?.hasStorageChanges(
      before: committed, bytesThrough: bytesThrough) ?? false
  }

  /// Takes the newest records up again: those that are stored by themselves, and those in batches.
  ///
  /// - Parameters:
  ///   - topic: the topic's name, for reports.
  ///   - states: all of kind ``StoredState/Kind/newest``, in order.
  ///   - wallClock: the present time, in milliseconds since 1970.
  ///   - done: called once, perhaps before this returns; with what kept the store from being read.
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

/// Puts a compact topic's newest records together from what is stored.
// @unchecked: belongs to one read, whose calls come one after the other.
private final class NewestRestoration: @unchecked Sendable {
  private let newest: CompactedRecords
  private let topic: String
  private let storage: StoreTopicState
  /// The offset of the record that comes next.
  private(set) var nextOffset: UInt64
  /// What can't be read ends before this offset; 0 for nothing.
  private var lostBefore: UInt64 = 0

  init(_ newest: CompactedRecords, _ topic: String, _ storage: StoreTopicState) {
    self.newest = newest
    self.topic = topic
    self.storage = storage
    nextOffset = storage.birthExtent.firstOffset
  }

  /// Takes the records that are stored by themselves.
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
    // Records from there on are in the batches.
    for record in records where record.offset < nextOffset {
      unsafe record.item.withUnsafeBytes { unsafe newest.restore($0, at: record.offset, time: record.time) }
    }
    // Batches behind those that were carried are missing.
    if nextOffset < extent.firstOffset { lose(before: extent.firstOffset) }
  }

  /// Takes a batch. Returns whether another one is wanted.
  func take(_ first: UInt64, _ value: UnsafeRawBufferPointer) -> Bool {
    guard let batch = unsafe BatchView(value, of: storage.id, at: first) else { return true }
    if first > nextOffset { lose(before: first) }
    let end = unsafe StoredNewest.forEachRecord(
      in: batch.items, at: first, time: batch.header.firstTime, from: nextOffset
    ) { item, offset, time in unsafe newest.restore(item, at: offset, time: time) }
    nextOffset = max(nextOffset, end)
    return nextOffset < storage.birthExtent.head
  }

  /// There are no more batches.
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
