import SluiceIO

/// The clock of a simulated world, and what is to happen at which time.
///
/// Events at the same time happen in a seeded order, unrelated to the order in which they were scheduled.
final class SimulatedScheduler {
  private(set) var now: MonotonicTime
  var random: SeededRandom
  /// The loop whose turn it is.
  var current: SimulatedLoop?
  var trace: ((String) -> Void)?
  private var queue = EventQueue()

  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
    // Not at 0, where code that takes an unset time for a real one would get away with it.
    now = MonotonicTime(nanoseconds: 1_000_000_000 + random.next(below: 1_000_000_000))
  }

  var nextTime: MonotonicTime? { queue.nextTime.map(MonotonicTime.init(nanoseconds:)) }

  func schedule(at time: MonotonicTime, _ action: @escaping () -> Void) {
    queue.push(max(time, now).nanoseconds, tieBreak: random.next(), EventQueue.Action(run: action))
  }

  func schedule(after delay: Duration, _ action: @escaping () -> Void) {
    schedule(at: now + delay, action)
  }

  /// Makes the next event happen. Returns false when there is none.
  func step() -> Bool {
    guard let (time, action) = queue.pop() else { return false }
    now = MonotonicTime(nanoseconds: time)
    action.run()
    return true
  }

  /// Lets time pass in which nothing happens.
  func advance(to time: MonotonicTime) {
    now = max(now, time)
  }

  func removeAll() {
    let dropped = queue
    queue = EventQueue()
    _ = consume dropped
  }

  func note(_ text: @autoclosure () -> String) {
    guard let trace else { return }
    let microseconds = now.nanoseconds / 1_000
    trace("\(microseconds / 1_000_000).\(String(microseconds % 1_000_000 + 1_000_000).dropFirst()) \(text())")
  }
}
