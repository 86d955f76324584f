import SluiceLog
import Synchronization

/// Compares the memory of records, connections and clients' objects with a ceiling, and stops producers above it.
///
/// ```
///  0 ─────────────── 90 % ───── ceiling ───── + 1/8
///    producers run   │ unchanged │ no grants  │ connections with publications aren't read
/// ```
///
/// From any thread. A check costs a few loads, and is made at the end of each loop's turn.
package final class MemoryWatch: Sendable {
  /// A change that a check has found.
  package enum Change: Sendable {
    case reached
    case left
  }

  /// In bytes; 0 for none.
  package let ceiling: Int
  /// The bytes that are kept besides records and the buffers of connections.
  package let kept: KeptMemory
  /// The parts of `kept` by client.
  package let accounts: KeptAccounts
  private let windowBytes: Int
  private let pool: SegmentPool
  private let metrics: BrokerMetrics
  private let full = Atomic(false)
  private let overflowing = Atomic(false)

  /// The least that a publication is granted at a time.
  private static let leastWindow = 64 << 10

  package init(
    ceiling: Int, shares: KeptAccounts.Shares = KeptAccounts.Shares(), windowBytes: Int, pool: SegmentPool,
    metrics: BrokerMetrics
  ) {
    self.ceiling = ceiling
    self.windowBytes = windowBytes
    self.pool = pool
    self.metrics = metrics
    kept = KeptMemory(limit: ceiling / 2, metrics: metrics)
    accounts = KeptAccounts(kept, shares)
    metrics.set(.memoryCeiling, to: ceiling)
  }

  /// Bytes of records, of connections' buffers, and of what else is kept for clients.
  package var used: Int { pool.bytesInUse + pool.bytesAccounted + metrics[.bufferedBytes] + kept.used }

  /// Whether producers get no grants.
  package var isFull: Bool { full.load(ordering: .relaxed) }

  /// Whether connections with publications aren't read.
  package var isOverflowing: Bool { overflowing.load(ordering: .relaxed) }

  /// The most bytes that one publication is granted at a time, so that the grants of all publications hardly exceed the free memory.
  package var window: UInt64 {
    guard ceiling > 0 else { return UInt64(windowBytes) }
    let room = max(ceiling - used, 0) / 2 / max(metrics[.publications], 1)
    return UInt64(min(windowBytes, max(room, Self.leastWindow)))
  }

  /// The largest ``window`` there is.
  package var largestWindow: UInt64 { UInt64(windowBytes) }

  /// Compares the memory in use with the ceiling.
  ///
  /// - Returns: the change, to one of the callers that find it at the same time.
  package func look() -> Change? {
    guard ceiling > 0 else { return nil }
    let used = used
    let isOver = used > ceiling + ceiling / 8 || (isOverflowing && used > ceiling)
    if isOver != isOverflowing { overflowing.store(isOver, ordering: .relaxed) }
    if !isFull, used >= ceiling {
      guard !full.exchange(true, ordering: .sequentiallyConsistent) else { return nil }
      metrics.add(.memoryCeilingReached)
      pool.releasePooled()
      return .reached
    }
    if isFull, used < ceiling - ceiling / 10 {
      return full.exchange(false, ordering: .sequentiallyConsistent) ? .left : nil
    }
    return nil
  }
}
