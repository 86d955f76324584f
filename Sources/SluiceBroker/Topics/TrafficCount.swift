import SluiceIO

/// What has gone through a topic, as it is counted: by each loop for itself, in plain numbers, and added up when somebody asks.
struct TrafficCount: Sendable {
  /// But for the times.
  private var counts = TopicTraffic()
  /// In nanoseconds.
  private var starved: UInt64 = 0
  private var heldUp: UInt64 = 0

  /// As it is shown.
  var shown: TopicTraffic {
    var traffic = counts
    traffic.starved = starved / 1_000_000
    traffic.heldUp = heldUp / 1_000_000
    return traffic
  }

  mutating func add(_ other: TrafficCount) {
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

  mutating func granted(_ records: UInt64) { counts.granted &+= records }

  mutating func received(_ records: UInt64, bytes: Int) {
    counts.received &+= records
    counts.receivedBytes &+= UInt64(bytes)
  }

  mutating func acknowledged(_ records: UInt64) { counts.acknowledged &+= records }

  mutating func heldUp(since start: MonotonicTime?, until end: MonotonicTime) {
    if let start { heldUp &+= Self.nanoseconds(from: start, to: end) }
  }

  // MARK: Subscribers

  /// From here on a total stands for any number, as all ones does: nobody could be sent as much, and sums of such totals would overflow.
  static let anyNumber: UInt64 = 1 << 53

  /// The total of what a subscriber has asked for has grown.
  mutating func requested(from former: UInt64, to granted: UInt64) {
    if granted < Self.anyNumber, granted > former { counts.requested &+= granted - former }
  }

  mutating func sent(_ records: UInt64, bytes: Int) {
    counts.sent &+= records
    counts.sentBytes &+= UInt64(bytes)
  }

  mutating func missed(_ records: UInt64) { counts.missed &+= records }

  mutating func starved(since start: MonotonicTime?, until end: MonotonicTime) {
    if let start { starved &+= Self.nanoseconds(from: start, to: end) }
  }

  private static func nanoseconds(from start: MonotonicTime, to end: MonotonicTime) -> UInt64 {
    end > start ? end.nanoseconds - start.nanoseconds : 0
  }
}
