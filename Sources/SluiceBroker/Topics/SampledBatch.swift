import SluiceIO
import Synchronization

/// A batch of a topic of which is measured how long it takes to a subscriber that follows the head: the first that gets it. There is one at a time.
///
/// From any loop. Of several that write at the same moment one counts, perhaps with the time of another.
struct SampledBatch: ~Copyable {
  /// So long, in nanoseconds, a batch is waited for that nobody gets.
  private static let patience: UInt64 = 1_000_000_000
  private static let none = UInt64.max

  private let offset = Atomic<UInt64>(none)
  private let time = Atomic<UInt64>(0)

  /// A batch was appended, of which the last record has this offset. It isn't noted while another one is on its way.
  func note(_ offset: UInt64, at now: MonotonicTime) {
    if self.offset.load(ordering: .relaxed) != Self.none,
      now.nanoseconds < time.load(ordering: .relaxed) &+ Self.patience
    {
      return
    }
    time.store(now.nanoseconds, ordering: .relaxed)
    self.offset.store(offset, ordering: .releasing)
  }

  /// Somebody who follows the head gets these records.
  ///
  /// - Returns: when the batch was appended, if it is among them. It isn't waited for any more then, nor when it was before them.
  func take(_ offsets: Range<UInt64>) -> MonotonicTime? {
    let noted = offset.load(ordering: .acquiring)
    guard noted < offsets.upperBound else { return nil }
    let start = MonotonicTime(nanoseconds: time.load(ordering: .relaxed))
    guard offset.compareExchange(expected: noted, desired: Self.none, ordering: .relaxed).exchanged else {
      return nil
    }
    return noted >= offsets.lowerBound ? start : nil
  }
}
