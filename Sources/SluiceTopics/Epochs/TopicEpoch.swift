import SluiceLog
import SluiceStore
import SluiceWire
import Synchronization

/// One epoch of a topic: a number, records, and at most one terminal event.
///
/// A topic whose scope is `whileConnected` starts over with a new epoch; subscribers of the old one continue to read it. From any thread.
package final class TopicEpoch: Sendable {
  package enum Condition: UInt8, AtomicRepresentable {
    case open
    /// The terminal event is set; no more records follow.
    case ended
    case deleted
    /// The topic has started over without a terminal event: its producers continue in the next epoch.
    case superseded
  }

  /// Changes once at most, with ``lineage``: see ``Topic/compare(_:on:)``. Streams that were opened under another number deliver nothing more.
  package var number: UInt64 {
    @inline(__always) get { atomicNumber.load(ordering: .acquiring) }
  }

  package let log: TopicLog
  /// The newest record of each key, for a compact topic: late subscribers get only these.
  package let newest: CompactedRecords?
  /// Its state on disk; nil for a topic that is in memory only.
  package let storage: StoreTopicState?
  /// Epochs that this one continues, oldest first.
  var lineage: [StoredTopic.Ancestor] { ancestors.withLock { $0 } }

  private let atomicNumber: Atomic<UInt64>
  private let ancestors: Mutex<[StoredTopic.Ancestor]>
  private let atomicCondition = Atomic(Condition.open)
  private let storedEnding = Mutex<Complete.Ending?>(nil)

  package init(
    number: UInt64, log: TopicLog, newest: CompactedRecords? = nil, storage: StoreTopicState? = nil,
    lineage: [StoredTopic.Ancestor] = []
  ) {
    atomicNumber = Atomic(number)
    self.log = log
    self.newest = newest
    self.storage = storage
    ancestors = Mutex(lineage)
  }

  /// Returns where a subscriber that has read up to `offset` in the epoch numbered `epoch` continues in this one; nil if this epoch doesn't continue that one.
  package func continuing(_ epoch: UInt64, at offset: UInt64) -> UInt64? {
    ancestors.withLock { $0.position(of: offset, in: epoch) }
  }

  /// Once this isn't `open`, the log's head is final: read this first, then the head.
  package var condition: Condition { atomicCondition.load(ordering: .acquiring) }

  /// The terminal event; nil before it is set.
  package var ending: Complete.Ending? { storedEnding.withLock { $0 } }

  // The caller holds the topic's lock.

  package func end(_ ending: Complete.Ending) {
    storedEnding.withLock { $0 = ending }
    atomicCondition.store(.ended, ordering: .releasing)
  }

  package func delete() {
    atomicCondition.store(.deleted, ordering: .releasing)
  }

  func supersede() {
    atomicCondition.store(.superseded, ordering: .releasing)
  }

  /// Gives the epoch a new number, which continues the present one; in a compact topic it continues none, see
  /// ``StoredTopic/begin(epoch:continuingUpTo:through:)``.
  ///
  /// - Parameters:
  ///   - end: the offset at which clients continue that know later records of the present number.
  ///   - through: the offset up to which records that clients know under the present number are in this epoch.
  func `continue`(as number: UInt64, upTo end: UInt64, through: UInt64) {
    let former = StoredTopic.Ancestor(epoch: self.number, end: end, through: through)
    ancestors.withLock { $0.add(former, isCompact: newest != nil) }
    // A reader that sees a record appended later also sees the new number.
    atomicNumber.store(number, ordering: .releasing)
  }
}

extension TopicEpoch {
  /// The records that retention limits and trims have dropped in this epoch.
  package var dropped: DroppedRecords {
    if let newest { return newest.statistics().dropped }
    return storage?.dropped ?? log.statistics().dropped
  }

  /// The records that late subscribers can get.
  package func kept() -> (firstOffset: UInt64, head: UInt64, records: UInt64, bytes: Int) {
    if let newest {
      let statistics = newest.statistics()
      return (statistics.firstOffset, statistics.head, statistics.records, statistics.bytes)
    }
    if let storage {
      let head = log.head
      let first = min(floor(), head)
      return (first, head, head - first, Int(clamping: storage.storedBytes))
    }
    let statistics = log.statistics()
    return (statistics.firstOffset, statistics.head, statistics.records, statistics.bytes)
  }

  /// By how many milliseconds times of kept records are ahead of the clock, if that is more than the order of records needs; 0 otherwise.
  ///
  /// - Parameter now: the present time in milliseconds since 1970.
  package func lead(at now: Int64) -> UInt64 {
    let latest =
      if let newest {
        newest.latestTime
      } else if let storage {
        storage.clock.latest(from: storage.floor(before: log.head))
      } else {
        log.latestTime
      }
    let (lead, overflow) = latest.subtractingReportingOverflow(now)
    guard !overflow, lead > RecordClock.step else { return 0 }
    let kept = kept()
    return kept.firstOffset < kept.head ? UInt64(lead) : 0
  }
}

/// Makes epoch numbers of a broker's identity and a counter: distinct within one run of a broker and, with high probability, among
/// several runs. From any thread.
package final class EpochSource: Sendable {
  private let identity: UInt64
  private let last = Atomic<UInt64>(0)

  init(identity: UInt64) {
    self.identity = identity
  }

  /// A new number; never 0, which on the wire means any epoch.
  package func next() -> UInt64 {
    // SplitMix64's finalizer maps distinct inputs to distinct, dissimilar numbers.
    var mixed = identity &+ last.add(1, ordering: .relaxed).newValue &* 0x9E37_79B9_7F4A_7C15
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    mixed ^= mixed >> 31
    return mixed == 0 ? 1 : mixed
  }
}
