import SluiceIO

/// The clock of a simulated world, and what is to happen at which time.
///
/// What happens at one time happens in a seeded order, unrelated to the order in which it was scheduled.
final class SimulatedScheduler {
  private struct Event {
    var time: UInt64
    var tieBreak: UInt64
    var order: UInt64
    var action: () -> Void

    func precedes(_ other: Event) -> Bool {
      (time, tieBreak, order) < (other.time, other.tieBreak, other.order)
    }
  }

  private(set) var now: MonotonicTime
  var random: SeededRandom
  /// The loop whose turn it is.
  var current: SimulatedLoop?
  var trace: ((String) -> Void)?
  private var heap: [Event] = []
  private var scheduled: UInt64 = 0

  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
    // Not at 0, where code that takes an unset time for a real one would get away with it.
    now = MonotonicTime(nanoseconds: 1_000_000_000 + random.next(below: 1_000_000_000))
  }

  var nextTime: MonotonicTime? { heap.first.map { MonotonicTime(nanoseconds: $0.time) } }

  func schedule(at time: MonotonicTime, _ action: @escaping () -> Void) {
    let event = Event(
      time: max(time, now).nanoseconds, tieBreak: random.next(), order: scheduled, action: action)
    scheduled += 1
    heap.append(event)
    var position = heap.count - 1
    while position > 0 {
      let parent = (position - 1) / 2
      guard heap[position].precedes(heap[parent]) else { break }
      heap.swapAt(position, parent)
      position = parent
    }
  }

  func schedule(after delay: Duration, _ action: @escaping () -> Void) {
    schedule(at: now + delay, action)
  }

  /// Makes the next event happen. Returns false when there is none.
  func step() -> Bool {
    guard let event = heap.first else { return false }
    let last = heap.removeLast()
    if !heap.isEmpty {
      heap[0] = last
      sink()
    }
    now = MonotonicTime(nanoseconds: event.time)
    event.action()
    return true
  }

  /// Lets time pass in which nothing happens.
  func advance(to time: MonotonicTime) {
    now = max(now, time)
  }

  func removeAll() {
    let dropped = heap
    heap = []
    _ = consume dropped
  }

  func note(_ text: @autoclosure () -> String) {
    guard let trace else { return }
    let microseconds = now.nanoseconds / 1_000
    trace("\(microseconds / 1_000_000).\(String(microseconds % 1_000_000 + 1_000_000).dropFirst()) \(text())")
  }

  private func sink() {
    var position = 0
    while true {
      var child = 2 * position + 1
      guard child < heap.count else { return }
      if child + 1 < heap.count, heap[child + 1].precedes(heap[child]) { child += 1 }
      guard heap[child].precedes(heap[position]) else { return }
      heap.swapAt(child, position)
      position = child
    }
  }
}
