/// Checks order and loss, record by record, for one subscriber.
///
/// A record begins with publisher << 48 | sequence. Within a run of one publisher's records, each number must be the last one plus one, and the fast path
/// checks only that.
struct SequenceCheck: RecordSink {
  private static let sequenceBits: UInt64 = 48
  private static let sequenceMask: UInt64 = (1 << 48) - 1

  /// The number of the next record if it is from the same publisher as the last one.
  private var expected: UInt64 = 0
  private let publishers: Int
  /// By publisher, the sequence of its next record. The current publisher's is in `expected` until `flush`.
  private let next: UnsafeMutablePointer<UInt64>
  private(set) var lost: UInt64 = 0
  private(set) var outOfOrder: UInt64 = 0

  /// The memory is never freed, since it is used until the process ends.
  init(publishers: Int) {
    self.publishers = publishers
    next = .allocate(capacity: publishers)
    next.initialize(repeating: 0, count: publishers)
  }

  @inline(__always)
  mutating func record(_ payload: UnsafeRawPointer) {
    let number = UInt64(littleEndian: payload.loadUnaligned(as: UInt64.self))
    if number == expected {
      expected &+= 1
    } else {
      turn(to: number)
    }
  }

  /// The number of records of `publisher` that have arrived or were lost. Exact after `flush`.
  @inline(__always)
  func position(of publisher: Int) -> UInt64 {
    next[publisher]
  }

  /// The total number of records that have arrived. Exact after `flush`.
  var received: UInt64 {
    var sum: UInt64 = 0
    for publisher in 0..<publishers { sum += next[publisher] }
    return sum + outOfOrder - lost
  }

  /// Makes `position` and `received` exact.
  @inline(__always)
  mutating func flush() {
    next[Int(expected >> Self.sequenceBits)] = expected & Self.sequenceMask
  }

  /// Handles a record of another publisher, or one that isn't the expected one.
  @inline(never)
  private mutating func turn(to number: UInt64) {
    flush()
    let publisher = Int(number >> Self.sequenceBits)
    guard publisher < publishers else {
      outOfOrder += 1
      return
    }
    let sequence = number & Self.sequenceMask
    let due = next[publisher]
    if sequence < due {
      outOfOrder += 1
      return
    }
    lost += sequence - due
    expected = number &+ 1
    flush()
  }
}
