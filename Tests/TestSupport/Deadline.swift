import Glibc

/// A moment after which waiting is given up.
///
/// Nothing in the tests waits without one. The clock is the monotonic one.
public struct Deadline: Sendable {
  private let nanoseconds: UInt64

  public init(in seconds: Double) {
    nanoseconds = Self.now + UInt64(seconds * 1e9)
  }

  /// What a single wait is given unless it says otherwise: long, because a busy machine is no failure.
  public static let patience = 120.0

  public var isOver: Bool { Self.now >= nanoseconds }

  /// As `poll` wants it, rounded up; 0 when the deadline is over.
  public var milliseconds: Int32 {
    let now = Self.now
    guard nanoseconds > now else { return 0 }
    return Int32(clamping: (nanoseconds - now + 999_999) / 1_000_000)
  }

  public static var now: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}

/// Looks again and again until `condition` holds.
///
/// - Throws: ``TestFailure`` with `what` when it doesn't in time; what `condition` throws.
public func eventually(
  _ what: @autoclosure () -> String, within seconds: Double = Deadline.patience,
  every interval: Double = 0.01,
  _ condition: () throws -> Bool
) throws {
  let deadline = Deadline(in: seconds)
  while try !condition() {
    guard !deadline.isOver else { throw TestFailure("not within \(seconds) s: \(what())") }
    pause(interval)
  }
}

/// Sleeps that many seconds.
public func pause(_ seconds: Double) {
  usleep(UInt32(seconds * 1e6))
}
