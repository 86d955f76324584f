import SluiceIO
import SluiceWire
import Synchronization

/// The traffic of a topic since it was created or restored. The counters include streams that have detached.
public struct TopicTraffic: Hashable, Sendable {
  /// Records that producers were granted, and records and bytes that they have published, including dead letters of groups.
  public var granted: UInt64 = 0
  public var received: UInt64 = 0
  public var receivedBytes: UInt64 = 0
  /// Records acknowledged to producers.
  public var acknowledged: UInt64 = 0
  /// Records that subscribers have requested, without unlimited demand (2^53 and more); of demand that the topics of a pattern share, the part used here.
  /// Records and bytes that subscribers were sent, including time marks.
  public var requested: UInt64 = 0
  public var sent: UInt64 = 0
  public var sentBytes: UInt64 = 0
  /// Records that subscribers have missed because they were dropped before they were requested.
  public var missed: UInt64 = 0
  /// Records and bytes that retention limits and trims have dropped.
  public var dropped: UInt64 = 0
  public var droppedBytes: UInt64 = 0
  /// How long subscribers had records waiting and no demand, in milliseconds, summed over subscribers. Members of groups aren't counted, because other
  /// members may have demand.
  public var starved: UInt64 = 0
  /// How long producers had no demand, in milliseconds, summed over producers.
  public var heldUp: UInt64 = 0

  public init() {}
}

/// The traffic of a topic. Each loop counts its own in plain numbers; a snapshot adds them up.
package struct TrafficCount: Sendable {
  /// All numbers except the times.
  private var counts = TopicTraffic()
  /// In nanoseconds.
  private var starved: UInt64 = 0
  private var heldUp: UInt64 = 0

  /// The numbers as in TOPIC_SHOW and snapshots, with times in milliseconds.
  package init() {}

  package var shown: TopicTraffic {
    var traffic = counts
    traffic.starved = starved / 1_000_000
    traffic.heldUp = heldUp / 1_000_000
    return traffic
  }

  package mutating func add(_ other: TrafficCount) {
    counts.granted &+= other.counts.granted
    counts.received &+= other.counts.received
    counts.receivedBytes &+= other.counts.receivedBytes
    counts.acknowledged &+= other.counts.acknowledged
    counts.requested &+= other.counts.requested
    counts.sent &+= other.counts.sent
    counts.sentBytes &+= other.counts.sentBytes
    counts.missed &+= other.counts.missed
    starved &+= other.starved
    heldUp &+= other.heldUp
  }

  // MARK: Producers

  package mutating func granted(_ records: UInt64) { counts.granted &+= records }

  package mutating func received(_ records: UInt64, bytes: Int) {
    counts.received &+= records
    counts.receivedBytes &+= UInt64(bytes)
  }

  package mutating func acknowledged(_ records: UInt64) { counts.acknowledged &+= records }

  package mutating func heldUp(since start: MonotonicTime?, until end: MonotonicTime) {
    if let start { heldUp &+= Self.nanoseconds(from: start, to: end) }
  }

  // MARK: Subscribers

  /// A requested total of at least this counts as unlimited, like all ones: no subscriber can receive as many records, and sums of such totals would
  /// overflow.
  static let anyNumber: UInt64 = 1 << 53

  /// Counts the growth of a subscriber's requested total.
  package mutating func requested(from former: UInt64, to granted: UInt64) {
    if granted < Self.anyNumber, granted > former { counts.requested &+= granted - former }
  }

  package mutating func sent(_ records: UInt64, bytes: Int) {
    counts.sent &+= records
    counts.sentBytes &+= UInt64(bytes)
  }

  package mutating func missed(_ records: UInt64) { counts.missed &+= records }

  package mutating func starved(since start: MonotonicTime?, until end: MonotonicTime) {
    if let start { starved &+= Self.nanoseconds(from: start, to: end) }
  }

  private static func nanoseconds(from start: MonotonicTime, to end: MonotonicTime) -> UInt64 {
    end > start ? end.nanoseconds - start.nanoseconds : 0
  }
}

/// Samples a topic's latency from the append of a batch to its first delivery to a subscriber that follows the head, one batch at a time.
///
/// From any loop. If several loops note a batch at the same moment, one of them counts, possibly with the time of another.
package struct SampledBatch: ~Copyable {
  /// The time in nanoseconds after which a sample that no subscriber receives is discarded.
  private static let patience: UInt64 = 1_000_000_000
  private static let none = UInt64.max

  private let offset = Atomic<UInt64>(none)
  private let time = Atomic<UInt64>(0)

  /// Notes an appended batch by the offset of its last record, unless another sample is in progress.
  package func note(_ offset: UInt64, at now: MonotonicTime) {
    if self.offset.load(ordering: .relaxed) != Self.none,
      now.nanoseconds < time.load(ordering: .relaxed) &+ Self.patience
    {
      return
    }
    time.store(now.nanoseconds, ordering: .relaxed)
    self.offset.store(offset, ordering: .releasing)
  }

  /// Ends the sample when a subscriber that follows the head receives these records.
  ///
  /// - Returns: when the batch was appended, if it is among them. If it precedes them, the sample ends without a result.
  package func take(_ offsets: Range<UInt64>) -> MonotonicTime? {
    let noted = offset.load(ordering: .acquiring)
    guard noted < offsets.upperBound else { return nil }
    let start = MonotonicTime(nanoseconds: time.load(ordering: .relaxed))
    guard offset.compareExchange(expected: noted, desired: Self.none, ordering: .relaxed).exchanged else {
      return nil
    }
    return noted >= offsets.lowerBound ? start : nil
  }
}
