import SluiceLog
import Synchronization

/// How much memory a broker's records, connections and clients' things take, and what follows when that is too much.
///
/// ```
///  0 ─────────────── 90 % ───── ceiling ───── + 1/8
///    producers go on │ as before │ no grants  │ and nothing is read from those who publish
/// ```
///
/// From any thread. Looking costs a few loads, and is done at the end of each loop's turn.
final class MemoryWatch: Sendable {
  /// What a look has found to be different.
  enum Change: Sendable {
    case reached
    case left
  }

  /// In bytes; 0 for none.
  let ceiling: Int
  /// What is kept besides records and what waits in connections.
  let kept: KeptMemory
  private let windowBytes: Int
  private let pool: SegmentPool
  private let metrics: BrokerMetrics
  private let full = Atomic(false)
  private let overflowing = Atomic(false)

  /// The least that a publication is granted at a time.
  private static let leastWindow = 64 << 10

  init(ceiling: Int, windowBytes: Int, pool: SegmentPool, metrics: BrokerMetrics) {
    self.ceiling = ceiling
    self.windowBytes = windowBytes
    self.pool = pool
    self.metrics = metrics
    kept = KeptMemory(limit: ceiling / 2, metrics: metrics)
    metrics.set(.memoryCeiling, to: ceiling)
  }

  /// Bytes of records, of what waits in connections, and of what else is kept for clients.
  var used: Int { pool.bytesInUse + pool.bytesAccounted + metrics[.bufferedBytes] + kept.used }

  /// Whether producers wait.
  var isFull: Bool { full.load(ordering: .relaxed) }

  /// Whether those who publish aren't read from.
  var isOverflowing: Bool { overflowing.load(ordering: .relaxed) }

  /// The most bytes that one publication is granted at a time: what all have together isn't much more than there is room for.
  var window: UInt64 {
    guard ceiling > 0 else { return UInt64(windowBytes) }
    let room = max(ceiling - used, 0) / 2 / max(metrics[.publications], 1)
    return UInt64(min(windowBytes, max(room, Self.leastWindow)))
  }

  /// Looks how much there is.
  ///
  /// - Returns: what is to be done about it, to one of those who look at the same time.
  func look() -> Change? {
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
