/// A point on a clock that never goes back, in nanoseconds since an arbitrary start.
///
/// Only differences mean anything. The clock is the loop's: the kernel's `CLOCK_MONOTONIC` on a real loop, a counter
/// that the test moves on a simulated one.
public struct MonotonicTime: Hashable, Comparable, Sendable {
  public var nanoseconds: UInt64

  @inlinable
  public init(nanoseconds: UInt64) {
    self.nanoseconds = nanoseconds
  }

  @inlinable
  public static func < (left: Self, right: Self) -> Bool {
    left.nanoseconds < right.nanoseconds
  }

  /// Later by `duration`; saturates at the ends of the range instead of trapping.
  @inlinable
  public static func + (time: Self, duration: Duration) -> Self {
    let delta = duration.clampedNanoseconds
    if delta >= 0 {
      let (sum, overflow) = time.nanoseconds.addingReportingOverflow(UInt64(delta))
      return Self(nanoseconds: overflow ? .max : sum)
    }
    let (difference, underflow) = time.nanoseconds.subtractingReportingOverflow(delta.magnitude)
    return Self(nanoseconds: underflow ? 0 : difference)
  }

  /// The time from `earlier` to `later`; negative when they are the other way round.
  @inlinable
  public static func - (later: Self, earlier: Self) -> Duration {
    .nanoseconds(Int64(truncatingIfNeeded: later.nanoseconds &- earlier.nanoseconds))
  }
}

extension Duration {
  /// The duration in whole nanoseconds, clamped to what fits: ±292 years.
  @inlinable
  public var clampedNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, overflow2) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
    return overflow2 ? (seconds < 0 ? .min : .max) : sum
  }
}

/// Both clocks of a loop at one moment. Times that outlive the process are stored as times of the wall clock.
package struct ClockReading: Hashable, Sendable {
  package var now: MonotonicTime
  /// Milliseconds since 1970.
  package var wallClock: Int64

  package init(now: MonotonicTime, wallClock: Int64) {
    self.now = now
    self.wallClock = wallClock
  }

  /// The time of the wall clock at `time`, in milliseconds, rounded up.
  package func wallClock(at time: MonotonicTime) -> Int64 {
    let (milliseconds, rest) = (time - now).clampedNanoseconds.quotientAndRemainder(dividingBy: 1_000_000)
    return wallClock + milliseconds + (rest > 0 ? 1 : 0)
  }

  /// When the wall clock shows that many milliseconds since 1970, unless it is set meanwhile.
  package func time(at wallClock: Int64) -> MonotonicTime {
    now + .milliseconds(wallClock.subtractingReportingOverflow(self.wallClock).partialValue)
  }
}

extension EventLoop {
  /// Both clocks at the start of the current turn. On the loop only.
  package var clocks: ClockReading { ClockReading(now: now, wallClock: wallClock) }
}
