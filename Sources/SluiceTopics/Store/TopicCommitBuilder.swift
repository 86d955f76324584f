import SluiceIO
import SluiceLog
import SluiceStore
import SluiceWire
import Synchronization

/// The changes of one topic in a commit, and the state needed when the commit is done.
package struct TopicCommit {
  package let topic: any DurableTopic
  package var taken: UncommittedTail.Taken
  package var change: TopicChange
  /// The extent stored before the commit.
  package var before: StoredExtent
  /// The extent stored after the commit.
  var extent: StoredExtent
  /// Bytes of records that the limits don't keep, but a reader needs.
  var lapsed: UInt64
  /// The floor: no record before this offset is kept for late subscribers.
  var floor: UInt64 = 0
  /// The limit by which the commit drops records; nil if it drops none.
  package var cause: DroppedRecords.Cause?

  /// Whether its truncation may be stored without the other changes. That isn't so for a compact topic, whose states contain copies of dropped records.
  var truncatesAlone: Bool { change.truncateBefore != nil && topic.storage?.newest == nil }

  /// Merges the topic's next commit, so that both are stored as one.
  mutating func merge(_ next: TopicCommit) {
    taken.merge(next.taken)
    let replaced = Set(next.change.states.map { TopicChange.State($0.kind, key: $0.key, value: nil) })
    change.states.removeAll {
      replaced.contains(TopicChange.State($0.kind, key: $0.key, value: nil))
    }
    change.states += next.change.states
    change.row = next.change.row ?? change.row
    change.batches += next.change.batches
    if let offset = next.change.truncateBefore {
      change.truncateBefore = max(change.truncateBefore ?? 0, offset)
    }
    change.isDeletion = next.change.isDeletion
    extent = next.extent
    lapsed = next.lapsed
    floor = max(floor, next.floor)
    cause = next.cause ?? cause
  }
}

/// Builds a durable topic's commits from what is stored of it and what its limits drop. Belongs to the writer's loop.
final class TopicCommitBuilder {
  /// The most old batches whose headers are read at once.
  private static let lookedAt = 64

  private let store: any ShardStore
  private let storage: StoreTopicState
  /// The stored extent.
  private var extent: StoredExtent
  /// The extent that is stored when the commits in progress are settled.
  private var projected: StoredExtent
  private var retention: StoreRetention
  private let name: String
  /// Whether the store lacked headers in memory when the limits were last evaluated.
  private(set) var lacksHeaders = false
  /// Limits whose dropping of records was reported.
  private var reported: Set<DroppedRecords.Cause> = []
  /// The cut and the first offset for which no whole batch was found between the two.
  private var settled: (cut: UInt64, first: UInt64)?

  convenience init(_ topic: any DurableTopic, _ store: any ShardStore) {
    guard let storage = topic.storage else { preconditionFailure("only durable topics are stored") }
    self.init(topic.name, storage, store)
  }

  init(_ name: String, _ storage: StoreTopicState, _ store: any ShardStore) {
    self.store = store
    self.storage = storage
    self.name = name
    extent = storage.birthExtent
    projected = extent
    retention = StoreRetention(storage.retention)
  }

  /// Takes the topic's uncommitted changes. Nil if there are none.
  package func commit(_ topic: any DurableTopic, now: MonotonicTime, wallClock: Int64) -> TopicCommit? {
    guard let (taken, changes, keep) = topic.takeForCommit(at: ClockReading(now: now, wallClock: wallClock))
    else { return nil }
    var change = changes
    if change.isDeletion {
      return TopicCommit(
        topic: topic, taken: taken, change: change, before: projected, extent: projected, lapsed: 0)
    }
    for block in taken.blocks { block.seal(for: storage.id) }
    change.batches = taken.blocks
    var after = projected
    if let last = taken.blocks.last {
      after.head = last.endOffset
      after.bytesThrough = last.bytesThrough
      after.lastTime = last.lastTime
    }
    // A compact topic's limits apply to its newest records, and its change already states which batches are dropped.
    let isCompact = storage.newest != nil
    let cut =
      isCompact
      ? StoreRetention.Cut(offset: 0, bytes: 0) : cut(after, adding: taken.blocks, wallClock)
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
    defer { projected = after }
    return TopicCommit(
      topic: topic, taken: taken, change: change, before: projected, extent: after, lapsed: lapsed,
      floor: cut.offset, cause: cut.cause)
  }

  /// Whether there are whole batches to drop: because they have expired, because one commit couldn't drop all of them, or because a reader needed them.
  func isOutdated(_ topic: any DurableTopic, wallClock: Int64) -> Bool {
    if let newest = storage.newest {
      return storage.hasNewestChanges || isOutdated(before: newest.carriedBefore)
    }
    let cut = min(raiseFloor(wallClock: wallClock), topic.keptFrom ?? .max)
    guard cut > extent.firstOffset else { return false }
    if retention.end(ofWholeBatchesBefore: cut, extent) > extent.firstOffset { return true }
    return isOutdated(before: cut)
  }

  /// Whether there is a whole batch before that offset.
  private func isOutdated(before cut: UInt64) -> Bool {
    guard cut > extent.firstOffset else { return false }
    // Batches that are dropped by the limit of records or by a trim haven't been read yet.
    if let settled, settled == (cut, extent.firstOffset) { return false }
    if firstBatchEnds(by: cut) { return true }
    settled = (cut, extent.firstOffset)
    return false
  }

  /// Raises the floor to the offset at which the limits cut the stored records at this time. Returns the first record that is kept.
  @discardableResult
  func raiseFloor(wallClock: Int64) -> UInt64 {
    let cut = cut(extent, wallClock)
    if let cause = cut.cause { storage.raiseFloor(to: cut.offset, by: cause) }
    return cut.offset
  }

  private func firstBatchEnds(by offset: UInt64) -> Bool {
    var ends = false
    try? store.headers(of: storage.id, from: extent.firstOffset) { header in
      ends = header.endOffset <= min(offset, extent.head)
      return false
    }
    return ends
  }

  /// A change that drops the records that the limits no longer keep; nil if there are none.
  package func trim(_ topic: any DurableTopic, wallClock: Int64) -> (
    change: TopicChange, cause: DroppedRecords.Cause?
  )? {
    guard storage.newest == nil, isOutdated(topic, wallClock: wallClock) else { return nil }
    let needed = topic.keptFrom
    let cut = cut(extent, wallClock)
    let offset = min(cut.offset, needed ?? .max)
    guard offset > extent.firstOffset else { return nil }
    var change = TopicChange(storage.id)
    change.truncateBefore = offset
    return (change, cut.cause)
  }

  /// Completes a change of ``trim(_:wallClock:)`` that is on disk.
  func trimmed(by cause: DroppedRecords.Cause?) {
    moved(to: (try? store.extent(of: storage.id)) ?? extent, lapsed: 0, by: cause)
  }

  /// - Parameter blocks: the batches about to be added: a commit may be larger than the limits allow.
  private func cut(
    _ extent: StoredExtent, adding blocks: [BatchBlock] = [], _ now: Int64
  ) -> StoreRetention.Cut {
    retention.retention = storage.retention
    retention.clock = storage.clock
    var cut = retainedCut(extent, adding: blocks, now)
    let floor = storage.raisedFloor
    let offset = min(floor.offset, extent.head)
    if offset > cut.offset { (cut.offset, cut.cause) = (offset, floor.cause) }
    return cut
  }

  private func retainedCut(
    _ extent: StoredExtent, adding blocks: [BatchBlock], _ now: Int64
  ) -> StoreRetention.Cut {
    var cut = storedCut(extent, now)
    guard let first = blocks.first,
      cut.offset >= first.firstOffset || retention.wantsBatches(extent, now: now)
    else { return cut }
    retention.take(
      blocks.map {
        StoreRetention.Batch(endOffset: $0.endOffset, bytesThrough: $0.bytesThrough, lastTime: $0.lastTime)
      })
    cut = retention.cut(extent, now: now)
    return cut
  }

  private func storedCut(_ extent: StoredExtent, _ now: Int64) -> StoreRetention.Cut {
    var cut = retention.cut(extent, now: now)
    lacksHeaders = false
    while retention.wantsBatches(extent, now: now), cut.offset < extent.head {
      var batches: [StoreRetention.Batch] = []
      try? store.headers(of: storage.id, from: cut.offset) { header in
        guard let batch = StoreRetention.Batch(header, in: extent) else { return true }
        batches.append(batch)
        return batches.count < Self.lookedAt
      }
      if batches.isEmpty {
        lacksHeaders = true
        break
      }
      retention.take(batches)
      let next = retention.cut(extent, now: now)
      if next.offset <= cut.offset { break }
      cut = next
    }
    return cut
  }

  /// Completes a commit that is on disk.
  func moved(to commit: TopicCommit) {
    // The store reports which records were dropped, since it drops whole batches.
    let after = (try? store.extent(of: storage.id)) ?? commit.extent
    if extent.head == 0, let first = commit.taken.blocks.first?.firstOffset { extent.firstOffset = first }
    if let cause = commit.cause { storage.raiseFloor(to: commit.floor, by: cause) }
    moved(to: after, lapsed: commit.lapsed, by: commit.cause)
  }

  private func moved(to after: StoredExtent, lapsed: UInt64, by cause: DroppedRecords.Cause?) {
    let before = extent
    extent = after
    if projected.head <= after.head {
      projected = after
    } else {
      projected.firstOffset = after.firstOffset
      projected.bytesBefore = after.bytesBefore
    }
    storage.moved(to: after, lapsed: lapsed)
    guard after.firstOffset > before.firstOffset, let cause else { return }
    storage.dropped(
      .init(
        records: after.firstOffset - before.firstOffset,
        bytes: after.bytesBefore - min(before.bytesBefore, after.bytesBefore)), by: cause)
    // A trim was requested by a client, and is in the audit log.
    guard cause != .trim, reported.insert(cause).inserted else { return }
    storage.service.report(.dropping(topic: name, limit: cause))
  }
}
