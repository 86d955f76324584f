/// Checks the records like any subscriber, and records the latency of each.
struct LatencySink: CheckingSink {
  var check: SequenceCheck
  let samples = Samples()
  /// The time at which the present bytes were received.
  private var now: UInt64 = 0
  /// Before this time records are checked, but their latencies aren't recorded.
  private var quietUntil: UInt64 = .max

  init(publishers: Int) {
    check = SequenceCheck(publishers: publishers)
  }

  /// Records the latencies of records that were sent at or after this time.
  mutating func measure(from time: UInt64) {
    quietUntil = time
  }

  mutating func bytesArrived() {
    now = monotonicNanoseconds()
  }

  @inline(__always)
  mutating func record(_ payload: UnsafeRawPointer) {
    check.record(payload)
    let sent = UInt64(littleEndian: (payload + 8).loadUnaligned(as: UInt64.self))
    if sent >= quietUntil { samples.add(now &- sent) }
  }
}

/// A sink that checks a subscriber's records.
protocol CheckingSink: RecordSink {
  init(publishers: Int)
  var check: SequenceCheck { get set }
  /// Called before the records of one read are passed on.
  mutating func bytesArrived()
}

/// Checks only order and loss.
struct CountingSink: CheckingSink {
  var check: SequenceCheck

  init(publishers: Int) {
    check = SequenceCheck(publishers: publishers)
  }

  mutating func bytesArrived() {}

  @inline(__always)
  mutating func record(_ payload: UnsafeRawPointer) {
    check.record(payload)
  }
}

/// Nanoseconds from sending to receiving, in the order of arrival. An object, so that copies of a sink share it.
final class Samples {
  private(set) var values: [UInt64] = []

  init() {
    values.reserveCapacity(1 << 20)
  }

  func add(_ value: UInt64) {
    values.append(value)
  }
}
