import Glibc

/// Keeps a thread to so many steps a second.
struct Pace {
  private let interval: Double
  private var next: Double
  /// Sleeping for less costs more than it is worth; the rate is right on average all the same.
  private static let grain = 0.001

  /// - Parameter rate: steps a second, more than 0.
  init(rate: Double) {
    interval = 1 / rate
    next = Self.now
  }

  /// Waits until the next step is due. After a delay the steps that were missed aren't made up for in a burst of more than a second.
  mutating func wait() {
    let now = Self.now
    let early = next - now
    if early > Self.grain {
      var time = timespec(tv_sec: Int(early), tv_nsec: Int((early - early.rounded(.down)) * 1e9))
      var left = timespec()
      while unsafe nanosleep(&time, &left) != 0 { time = left }
    }
    next = max(next, now - 1) + interval
  }

  private static var now: Double {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
