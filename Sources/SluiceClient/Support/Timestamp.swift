/// A moment by the broker's wall clock, in whole milliseconds. `SluiceClientFoundation` converts it from and to `Date`.
///
/// ```swift
/// let start = Timestamp(millisecondsSince1970: 1_770_000_000_000)
/// let ticks = client.topic("ticks", from: .time(start + .seconds(60)))
/// ```
public struct Timestamp: Hashable, Comparable, Sendable {
  /// Milliseconds since 1970-01-01 00:00 UTC.
  public var millisecondsSince1970: Int64

  @inlinable
  public init(millisecondsSince1970 milliseconds: Int64) {
    millisecondsSince1970 = milliseconds
  }

  @inlinable
  public static func < (left: Self, right: Self) -> Bool {
    left.millisecondsSince1970 < right.millisecondsSince1970
  }

  /// Later by `duration`, of which parts of a millisecond are dropped; the result stays within the range of numbers.
  public static func + (time: Self, duration: Duration) -> Self {
    let (sum, overflow) = time.millisecondsSince1970.addingReportingOverflow(duration.wholeMilliseconds)
    return Self(millisecondsSince1970: overflow ? (duration < .zero ? .min : .max) : sum)
  }

  /// Earlier by `duration`.
  public static func - (time: Self, duration: Duration) -> Self { time + (.zero - duration) }

  /// The time from `earlier` to `later`; negative when they are the other way round.
  public static func - (later: Self, earlier: Self) -> Duration {
    .milliseconds(later.millisecondsSince1970) - .milliseconds(earlier.millisecondsSince1970)
  }
}

extension Duration {
  /// Parts of a millisecond are dropped.
  fileprivate var wholeMilliseconds: Int64 {
    let (seconds, attoseconds) = components
    let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, overflow2) = whole.addingReportingOverflow(attoseconds / 1_000_000_000_000_000)
    return overflow2 ? (seconds < 0 ? .min : .max) : sum
  }
}
