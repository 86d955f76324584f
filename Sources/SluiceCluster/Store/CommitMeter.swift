import SluiceIO
import SluiceStore
import Synchronization

/// Measures how long the engine takes to store the commits of a node's shards. From any thread.
final class CommitMeter: Sendable {
  private let state = Mutex(CommitTimes())

  var times: CommitTimes { state.withLock { $0 } }

  /// Counts a stored commit.
  ///
  /// - Parameter time: from the moment it was sent until the engine acknowledged it.
  func note(_ shard: Int, _ time: Duration) {
    let nanoseconds = UInt64(clamping: time.clampedNanoseconds)
    state.withLock { $0.note(shard, nanoseconds) }
  }

  /// Discards earlier measurements of a shard that the node has opened.
  func begin(_ shard: Int) { state.withLock { $0.shards[shard] = nil } }
}

/// How long the engine took to store commits: of all shards that a node has owned, and of each shard.
public struct CommitTimes: Hashable, Sendable {
  /// Upper bounds of the histogram, in nanoseconds.
  public static let bounds: [UInt64] =
    [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000].map { $0 * 1_000_000 } + [.max]

  /// The times of a shard since the node opened it.
  public struct Shard: Hashable, Sendable {
    public var commits: UInt64 = 0
    /// The exponential moving average, in which the latest commit counts for an eighth; in nanoseconds.
    public var recent: UInt64 = 0
    /// The longest time, in nanoseconds.
    public var longest: UInt64 = 0
  }

  public var shards: [Int: Shard] = [:]
  /// Commits by duration, one count for each of ``bounds``.
  public var counts = Array(repeating: UInt64(0), count: bounds.count)
  /// The sum of all durations, in nanoseconds.
  public var total: UInt64 = 0

  public init() {}

  mutating func note(_ shard: Int, _ nanoseconds: UInt64) {
    let bucket = Self.bounds.firstIndex { nanoseconds <= $0 } ?? Self.bounds.count - 1
    counts[bucket] += 1
    total &+= nanoseconds
    var figures = shards[shard] ?? Shard()
    let recent = figures.recent
    figures.recent =
      figures.commits == 0 ? nanoseconds : recent - recent / 8 + nanoseconds / 8
    figures.longest = max(figures.longest, nanoseconds)
    figures.commits += 1
    shards[shard] = figures
  }
}
