import SluiceWire
import Synchronization

/// Counts the bytes of what peers have the broker keep besides records, and bounds them.
///
/// | what a peer can have more of | how it is bounded |
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
/// | frames in part, answers, places of patterns, copied records | ``BrokerMetric/bufferedBytes`` |
/// | records in memory | the pool of segments |
/// | records that wait for the disk | `--storage-backlog` |
/// | credentials that wait to be verified | `--max-authentications` |
/// | identities | those that are connected, or were a quarter of a second ago |
///
/// What is counted here may come to half of the ceiling of memory; beyond that no more is made, and clients are told
/// ``ErrorCode/limitReached``. What is there goes on. The numbers are estimates of what such an object takes.
///
/// From any thread.
final class KeptMemory: Sendable {
  /// Bytes of a topic without records, besides its name.
  static let topic = 2_048
  /// Bytes of a group with nothing under way, besides its settings.
  static let group = 1_280
  /// Bytes of a record that a group with explicit acknowledgement has under way.
  static let groupRecord = 160
  /// Bytes of a cursor, besides its name.
  static let cursor = 224
  static let producer = 192
  /// Bytes of a subscription or publication.
  static let stream = 1_024
  /// Bytes of a topic in a pattern's subscription.
  static let match = 640

  /// Records that a group may have under way when there is no more memory: few, so that its members go on.
  static let leastGroupRecords = 16

  /// In bytes; 0 for none.
  let limit: Int
  private let bytes = Atomic(0)
  private let metrics: BrokerMetrics

  init(limit: Int, metrics: BrokerMetrics) {
    self.limit = limit
    self.metrics = metrics
  }

  var used: Int { bytes.load(ordering: .relaxed) }

  /// Whether nothing more may be made.
  var isFull: Bool { limit > 0 && used >= limit }

  func add(_ count: Int) {
    bytes.add(count, ordering: .relaxed)
  }

  /// Why nothing more may be made, if so. Callers that ask at the same moment may each make one more.
  var refusal: WireError? {
    guard isFull else { return nil }
    metrics.add(.refusedKept)
    return WireError(
      .limitReached,
      "what the broker keeps for its clients besides records takes \(used) bytes, and half of --memory is the limit; delete topics, groups and cursors or cancel subscriptions that aren't needed, or have --memory raised"
    )
  }

  /// - Throws: ``ErrorCode/limitReached`` when nothing more may be made.
  func check() throws(WireError) {
    if let refusal { throw refusal }
  }

  /// Bytes that one object keeps. They are given back with it.
  final class Share: Sendable {
    private let memory: KeptMemory
    private let bytes: Atomic<Int>

    init(_ memory: KeptMemory, _ count: Int = 0) {
      self.memory = memory
      bytes = Atomic(count)
      memory.add(count)
    }

    deinit { memory.add(-bytes.load(ordering: .relaxed)) }

    func add(_ count: Int) {
      bytes.add(count, ordering: .relaxed)
      memory.add(count)
    }

    /// From one thread at a time.
    func set(to count: Int) {
      let former = bytes.exchange(count, ordering: .relaxed)
      if former != count { memory.add(count - former) }
    }

    var isFull: Bool { memory.isFull }
  }
}
