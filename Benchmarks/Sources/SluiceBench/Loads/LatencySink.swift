/// Checks the records like any subscriber, and notes how long each was under way.
struct LatencySink: CheckingSink {
  var check: SequenceCheck
  let samples = Samples()
  /// When the bytes at hand were received.
  private var now: UInt64 = 0
  /// Until then records are checked, but not noted.
  private var quietUntil: UInt64 = .max

  init(publishers: Int) {
    check = SequenceCheck(publishers: publishers)
  }

  /// Notes records that were sent at or after this time.
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

/// Where a subscriber's records go.
protocol CheckingSink: RecordSink {
  init(publishers: Int)
  var check: SequenceCheck { get set }
  /// Called before the records of one read are handed on.
  mutating func bytesArrived()
}

/// Order and loss only.
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

/// Nanoseconds from sending to receiving, in the order of arrival. An object, so that a copied sink adds to the same store.
final class Samples {
  private(set) var values: [UInt64] = []

  init() {
    values.reserveCapacity(1 << 20)
  }

  func add(_ value: UInt64) {
    values.append(value)
  }
}
