/// The failures of one address.
struct AttemptRecord: Sendable {
  /// As many as there were at `since`.
  private var count = 0
  /// From when on they are being forgotten.
  private var since: UInt64 = 0
  private var last: UInt64 = 0
  private var forgiven: UInt64?

  func failures(at now: UInt64, _ settings: AttemptLimiter.Settings) -> Int {
    let forgotten = elapsed(since, now) / memory(settings)
    return forgotten >= UInt64(count) ? 0 : count - Int(forgotten)
  }

  /// How long from `now` until there may be another attempt.
  func delay(at now: UInt64, _ settings: AttemptLimiter.Settings, ceiling: Duration) -> Duration {
    let excess = failures(at: now, settings) - max(0, settings.free)
    guard excess > 0 else { return .zero }
    let first = nanoseconds(settings.first)
    let (whole, overflow) = first.multipliedReportingOverflow(by: 1 << UInt64(min(excess - 1, 40)))
    let penalty = min(overflow ? .max : whole, nanoseconds(ceiling))
    let passed = elapsed(last, now)
    return passed >= penalty ? .zero : .nanoseconds(Int64(clamping: penalty - passed))
  }

  mutating func add(at now: UInt64, _ settings: AttemptLimiter.Settings) {
    settle(now, settings)
    count = min(count + 1, limit(settings))
    last = max(last, now)
  }

  mutating func forgive(at now: UInt64, _ settings: AttemptLimiter.Settings) {
    settle(now, settings)
    if let forgiven, elapsed(forgiven, now) < memory(settings) { return }
    forgiven = now
    count = max(0, count - 1)
  }

  /// Takes off what has been forgotten, in whole steps.
  private mutating func settle(_ now: UInt64, _ settings: AttemptLimiter.Settings) {
    let left = failures(at: now, settings)
    if left == 0 {
      since = max(since, now)
    } else {
      since += UInt64(count - left) * memory(settings)
    }
    count = left
  }

  /// More than so many change nothing: some more than it takes to get to the ceiling.
  private func limit(_ settings: AttemptLimiter.Settings) -> Int {
    let first = nanoseconds(settings.first)
    let ceiling = nanoseconds(max(settings.ceiling, settings.sharedCeiling))
    var doublings = 0
    while doublings < 40, first > 0, first < ceiling >> UInt64(doublings) { doublings += 1 }
    let (limit, overflow) = max(0, settings.free).addingReportingOverflow(doublings + 5)
    return overflow ? .max : limit
  }

  private func memory(_ settings: AttemptLimiter.Settings) -> UInt64 { max(1, nanoseconds(settings.memory)) }

  private func elapsed(_ from: UInt64, _ to: UInt64) -> UInt64 { to > from ? to - from : 0 }

  private func nanoseconds(_ duration: Duration) -> UInt64 {
    let (seconds, attoseconds) = duration.components
    let (whole, overflow) = UInt64(clamping: seconds).multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, overflow2) = whole.addingReportingOverflow(UInt64(clamping: attoseconds / 1_000_000_000))
    return overflow || overflow2 ? .max : sum
  }
}
