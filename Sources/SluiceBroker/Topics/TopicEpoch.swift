import SluiceLog
import SluiceStore
import SluiceWire
import Synchronization

/// One epoch of a topic: an epoch, its records, and at most one terminal event.
///
/// A topic whose scope is `whileConnected` starts over by taking a new epoch; those who read the old one go on undisturbed. From any thread.
final class TopicEpoch: Sendable {
  enum Condition: UInt8, AtomicRepresentable {
    case open
    /// The terminal event stands; there will be no more records.
    case ended
    case deleted
    /// The topic has started over, without a terminal event: its producers go on in the next epoch.
    case superseded
  }

  let number: UInt64
  let log: TopicLog
  /// The newest record of each key, where late subscribers get only those.
  let newest: CompactedRecords?
  /// What of it is on disk; nil for a topic that is in memory only.
  let storage: StoreTopicState?
  /// Lives that this one continues, oldest first.
  let lineage: [StoredTopic.Ancestor]

  private let atomicCondition = Atomic(Condition.open)
  private let storedEnding = Mutex<Complete.Ending?>(nil)

  init(
    number: UInt64, log: TopicLog, newest: CompactedRecords? = nil, storage: StoreTopicState? = nil,
    lineage: [StoredTopic.Ancestor] = []
  ) {
    self.number = number
    self.log = log
    self.newest = newest
    self.storage = storage
    self.lineage = lineage
  }

  /// Returns where a subscriber that has read up to `offset` in the epoch numbered `epoch` goes on in this one; nil if this epoch doesn't continue that one.
  func continuing(_ epoch: UInt64, at offset: UInt64) -> UInt64? {
    guard let index = lineage.firstIndex(where: { $0.epoch == epoch }) else { return nil }
    // What came behind an end is lost, and so is what a subscriber has had of it.
    return lineage[index...].reduce(offset) { min($0, $1.end) }
  }

  /// Whether more can come. Once it says no, the log's head is final: read this first, then the head.
  var condition: Condition { atomicCondition.load(ordering: .acquiring) }

  /// The terminal event, once there is one.
  var ending: Complete.Ending? { storedEnding.withLock { $0 } }

  // The topic's lock is held for these.

  func end(_ ending: Complete.Ending) {
    storedEnding.withLock { $0 = ending }
    atomicCondition.store(.ended, ordering: .releasing)
  }

  func delete() {
    atomicCondition.store(.deleted, ordering: .releasing)
  }

  func supersede() {
    atomicCondition.store(.superseded, ordering: .releasing)
  }
}
