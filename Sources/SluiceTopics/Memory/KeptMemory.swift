import SluiceWire
import Synchronization

/// Counts and bounds the bytes that the broker keeps for its clients besides records.
///
/// | what a client can add | how it is bounded |
/// |---|---|
/// | topics | counted here: ``topic``; `--max-topics` |
/// | groups, with or without members | counted here: ``group``; `--max-cursors` for each topic |
/// | records that groups have under way | counted here: ``groupRecord``; beyond the limit a group has few of them |
/// | durable cursors | counted here: ``cursor``; `--max-cursors` for each topic |
/// | producers that topics remember | counted here: ``producer``; `--max-producers` for each topic |
/// | names that a durable topic has forgotten, and that aren't deleted on disk yet | counted here |
/// | subscriptions, members of groups among them, and publications | counted here: ``stream``; `--max-subscriptions`, `--max-publications` |
/// | topics that patterns match | counted here: ``match`` |
/// | numbers of streams on a connection | counted here; `--max-streams` |
/// | connections | `--max-connections` |
/// | frames in part, answers, places of patterns, copied records, what waits in doors and in links to other nodes | ``BrokerMetric/bufferedBytes`` |
/// | records in memory | the pool of segments |
/// | records that wait for the disk | `--storage-backlog` |
/// | credentials that wait to be verified | `--max-authentications` |
/// | identities | only those that are connected, or were a quarter of a second ago |
///
/// The count may reach half of the memory ceiling; beyond it the broker refuses new objects with ``ErrorCode/limitReached``, and existing ones stay. The
/// numbers are estimates of what such an object takes.
///
/// From any thread.
package final class KeptMemory: Sendable {
  /// Bytes of a topic without records, besides its name.
  package static let topic = 2_048
  /// Bytes of a group with nothing under way, besides its settings.
  package static let group = 1_280
  /// Bytes of a record that a group with explicit acknowledgement has under way.
  static let groupRecord = 160
  /// Bytes of a cursor, besides its name.
  package static let cursor = 224
  package static let producer = 192
  /// Bytes of a subscription or publication.
  package static let stream = 1_024
  /// Bytes of a topic in a pattern's subscription.
  package static let match = 640

  /// Records that a group may have under way when memory is used up: few, so that its members make progress.
  static let leastGroupRecords = 16

  /// In bytes; 0 for none.
  package let limit: Int
  private let bytes = Atomic(0)
  private let metrics: BrokerMetrics

  init(limit: Int, metrics: BrokerMetrics) {
    self.limit = limit
    self.metrics = metrics
  }

  package var used: Int { bytes.load(ordering: .relaxed) }

  /// Whether new objects are refused.
  package var isFull: Bool { limit > 0 && used >= limit }

  package func add(_ count: Int) {
    bytes.add(count, ordering: .relaxed)
  }

  /// The error with which new objects are refused; nil when they aren't. Callers that ask at the same moment may each make one more.
  package var refusal: WireError? {
    guard isFull else { return nil }
    metrics.add(.refusedKept)
    return WireError(
      .limitReached,
      "the broker keeps \(used) bytes for its clients besides records, and half of --memory is the limit; delete unneeded topics, groups and cursors, cancel unneeded subscriptions, or have --memory raised"
    )
  }

  /// - Throws: ``ErrorCode/limitReached`` when new objects are refused.
  package func check() throws(WireError) {
    if let refusal { throw refusal }
  }

  /// The bytes that one object keeps, returned when it is released.
  package final class Share: Sendable {
    private let memory: KeptMemory
    private let bytes: Atomic<Int>

    package init(_ memory: KeptMemory, _ count: Int = 0) {
      self.memory = memory
      bytes = Atomic(count)
      memory.add(count)
    }

    deinit { memory.add(-bytes.load(ordering: .relaxed)) }

    package func add(_ count: Int) {
      bytes.add(count, ordering: .relaxed)
      memory.add(count)
    }

    /// From one thread at a time.
    package func set(to count: Int) {
      let former = bytes.exchange(count, ordering: .relaxed)
      if former != count { memory.add(count - former) }
    }

    package var isFull: Bool { memory.isFull }
  }
}
