import SluiceIO

/// How long producers have been limited for one reason: since when without a long pause, and for which share of the last minutes.
///
/// A value of bounded size. Time is cut into buckets of 4 seconds, of which 75 are kept, each with its limited nanoseconds.
struct HoldTime: Sendable {
  /// A pause of at most this length doesn't end an episode: a subscriber that periodically requests a few records limits producers all the time.
  static let longestPause = Duration.seconds(1)
  /// The length of a bucket in nanoseconds, which fits 32 bits.
  static let bucketLength: UInt64 = 4_000_000_000
  /// Buckets that make five minutes.
  static let buckets: UInt64 = 75
  /// Buckets that make one minute.
  static let bucketsOfMinute: UInt64 = 15

  /// When the present episode began, and when its last period ended; nil before the first period.
  private var episode: (start: MonotonicTime, end: MonotonicTime)?
  /// Limited nanoseconds by bucket number modulo ``buckets``; empty before the first period.
  private var limited: [UInt32] = []
  /// The number of the last bucket in use.
  private var last: UInt64 = 0

  /// Adds a period. Periods come in order; overlaps with earlier ones aren't counted again.
  package mutating func add(from start: MonotonicTime, to end: MonotonicTime) {
    let start = max(start, episode?.end ?? start)
    guard start < end else { return }
    if let episode, start - episode.end <= Self.longestPause {
      self.episode = (episode.start, end)
    } else {
      episode = (start, end)
    }
    count(from: start.nanoseconds, to: end.nanoseconds)
  }

  private mutating func count(from start: UInt64, to end: UInt64) {
    let number = end / Self.bucketLength
    if limited.isEmpty {
      limited = Array(repeating: 0, count: Int(Self.buckets))
    } else if number > last {
      for passed in last + 1...min(number, last + Self.buckets) { limited[Self.index(passed)] = 0 }
    }
    last = number
    let kept = number - min(number, Self.buckets - 1)
    var begin = max(start, kept * Self.bucketLength)
    while begin < end {
      let bucket = begin / Self.bucketLength
      let stop = min(end, (bucket + 1) * Self.bucketLength)
      limited[Self.index(bucket)] += UInt32(stop - begin)
      begin = stop
    }
  }

  private static func index(_ bucket: UInt64) -> Int { Int(bucket % buckets) }

  /// The length of the present episode in milliseconds, at least 1; nil when a long pause has ended it.
  package func milliseconds(at now: MonotonicTime) -> UInt64? {
    guard let episode, now - episode.end <= Self.longestPause else { return nil }
    return max((now - episode.start).clampedMilliseconds, 1)
  }

  /// The share of the last minute in thousandths: of the present bucket up to `now` and the 14 before it, so of 56 to 60 seconds.
  func lastMinute(at now: MonotonicTime) -> UInt16 { share(of: Self.bucketsOfMinute, at: now) }

  /// The share of the last five minutes in thousandths: of 296 to 300 seconds.
  func lastFiveMinutes(at now: MonotonicTime) -> UInt16 { share(of: Self.buckets, at: now) }

  private func share(of count: UInt64, at now: MonotonicTime) -> UInt16 {
    guard !limited.isEmpty else { return 0 }
    // Another loop's clock may be ahead.
    let now = max(now.nanoseconds, episode?.end.nanoseconds ?? 0)
    let number = now / Self.bucketLength
    let first = number - min(number, count - 1)
    let length = now - first * Self.bucketLength
    guard length > 0, first <= last else { return 0 }
    // Buckets before the first period are zero.
    let sum = (first...last).reduce(0 as UInt64) { $0 + UInt64(limited[Self.index($1)]) }
    return UInt16((sum * 1000 + length / 2) / length)
  }
}

extension Duration {
  package var clampedMilliseconds: UInt64 {
    let (seconds, attoseconds) = components
    return UInt64(clamping: seconds * 1000 + attoseconds / 1_000_000_000_000_000)
  }
}
