import Glibc

/// A moment at which waiting ends.
///
/// Every wait in the tests has one. Uses the monotonic clock.
public struct Deadline: Sendable {
  private let nanoseconds: UInt64

  public init(in seconds: Double) {
    nanoseconds = Self.now + UInt64(seconds * 1e9)
  }

  /// The default limit of a single wait, in seconds: long, because a busy machine is no failure.
  public static let patience = 120.0

  public var isOver: Bool { Self.now >= nanoseconds }

  /// The remaining time for `poll`, rounded up; 0 after the deadline.
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

/// Checks repeatedly until `condition` returns true.
///
/// - Throws: ``TestFailure`` with `what` on timeout; any error of `condition`.
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

/// Sleeps for that many seconds.
public func pause(_ seconds: Double) {
  usleep(UInt32(seconds * 1e6))
}
