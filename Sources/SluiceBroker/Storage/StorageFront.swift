import SluiceIO
import SluiceLog
import SluiceStore
import SluiceWire
import Synchronization

/// What a commit does to a topic, and what has to be known when it is done.
struct TopicCommit {
  let topic: Topic
  var taken: DurableTail.Taken
  var change: TopicChange
  /// What was stored before.
  var before: StoredExtent
  /// What is stored afterwards.
  var extent: StoredExtent
  /// Bytes of records that the limits don't keep, and somebody needs.
  var lapsed: UInt64
}

/// A durable topic as the writer sees it: what is stored of it, and what is to be dropped. Belongs to the writer's loop.
final class StorageFront {
  /// So many old batches are looked at in one go.
  private static let lookedAt = 64

  private let store: any TopicStore
  private let storage: TopicStorage
  private var extent: StoredExtent
  private var retention: RetentionFront

  init(_ topic: Topic, _ store: any TopicStore) {
    guard let storage = topic.storage else { preconditionFailure("only durable topics are stored") }
    self.store = store
    self.storage = storage
    extent = storage.birthExtent
    retention = RetentionFront(storage.retention)
  }

  /// Takes what waits of the topic. Nil when there is nothing to be done.
  func commit(_ topic: Topic, now: MonotonicTime, wallClock: Int64) -> TopicCommit? {
    guard let (taken, changes, keep) = topic.takeForCommit(now: now) else { return nil }
    var change = changes
    if change.isDeletion {
      return TopicCommit(
        topic: topic, taken: taken, change: change, before: extent, extent: extent, lapsed: 0)
    }
    for block in taken.blocks { block.seal(for: storage.id) }
    change.batches = taken.blocks
    var after = extent
    if let last = taken.blocks.last {
      after.head = last.endOffset
      after.bytesThrough = last.bytesThrough
      after.lastTime = last.lastTime
    }
    let cut = cut(after, wallClock)
    let allowed = min(cut.offset, keep ?? .max)
    if allowed > after.firstOffset { change.truncateBefore = allowed }
    let isNothing =
      taken.blocks.isEmpty && change.row == nil && change.states.isEmpty && change.truncateBefore == nil
      && taken.completions.isEmpty
    let lapsed = cut.offset > allowed ? cut.bytes - min(cut.bytes, after.bytesBefore) : 0
    if isNothing {
      topic.undo(taken)
      storage.moved(to: extent, lapsed: lapsed)
      return nil
    }
    return TopicCommit(
      topic: topic, taken: taken, change: change, before: extent, extent: after, lapsed: lapsed)
  }

  /// Whether there is something to drop by age.
  func isOutdated(wallClock: Int64) -> Bool {
    guard storage.retention.ageMilliseconds != nil else { return false }
    return cut(extent, wallClock).offset > extent.firstOffset
  }

  /// What drops nothing but what has become too old; nil when there is none of that.
  func trim(_ topic: Topic, wallClock: Int64) -> TopicChange? {
    guard isOutdated(wallClock: wallClock) else { return nil }
    let needed = topic.state.withLock { topic.keepFrom($0) }
    let offset = min(cut(extent, wallClock).offset, needed ?? .max)
    guard offset > extent.firstOffset else { return nil }
    var change = TopicChange(storage.id)
    change.truncateBefore = offset
    return change
  }

  /// That is done.
  func trimmed() {
    extent = (try? store.extent(of: storage.id)) ?? extent
    storage.moved(to: extent, lapsed: 0)
  }

  private func cut(_ extent: StoredExtent, _ now: Int64) -> (offset: UInt64, bytes: UInt64) {
    var cut = retention.cut(extent, now: now)
    while retention.wantsBatches(extent, now: now), cut.offset < extent.head {
      var batches: [RetentionFront.Batch] = []
      try? unsafe store.batches(of: storage.id, from: cut.offset) { offset, bytes in
        // Whether all of it is in order isn't asked: that would take reading it.
        guard let header = unsafe BatchHeader(bytes), header.firstOffset == offset,
          let batch = RetentionFront.Batch(header, in: extent)
        else { return true }
        batches.append(batch)
        return batches.count < Self.lookedAt
      }
      if batches.isEmpty { break }
      retention.take(batches)
      let next = retention.cut(extent, now: now)
      if next.offset <= cut.offset { break }
      cut = next
    }
    return cut
  }

  /// It is on disk.
  func moved(to commit: TopicCommit) {
    // What was dropped is what the store says: batches are dropped whole.
    extent = (try? store.extent(of: storage.id)) ?? commit.extent
    storage.moved(to: extent, lapsed: commit.lapsed)
  }
}
