import SluiceIO

/// The clock of a simulated world, and what is to happen at which time.
///
/// What happens at one time happens in a seeded order, unrelated to the order in which it was scheduled.
final class SimulatedScheduler {
  /// When an event happens, and where its action is. Without references: it moves in the heap at each step.
  private struct Event {
    var time: UInt64
    var tieBreak: UInt64
    var order: UInt64
    var slot: Int

    func precedes(_ other: Event) -> Bool {
      if time != other.time { return time < other.time }
      if tieBreak != other.tieBreak { return tieBreak < other.tieBreak }
      return order < other.order
    }
  }

  private(set) var now: MonotonicTime
  var random: SeededRandom
  /// The loop whose turn it is.
  var current: SimulatedLoop?
  var trace: ((String) -> Void)?
  private var heap: [Event] = []
  private var actions: [(() -> Void)?] = []
  private var freeSlots: [Int] = []
  private var scheduled: UInt64 = 0

  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
    // Not at 0, where code that takes an unset time for a real one would get away with it.
    now = MonotonicTime(nanoseconds: 1_000_000_000 + random.next(below: 1_000_000_000))
  }

  var nextTime: MonotonicTime? { heap.first.map { MonotonicTime(nanoseconds: $0.time) } }

  func schedule(at time: MonotonicTime, _ action: @escaping () -> Void) {
    let event = Event(
      time: max(time, now).nanoseconds, tieBreak: random.next(), order: scheduled, slot: keep(action))
    scheduled += 1
    heap.append(event)
    var position = heap.count - 1
    while position > 0 {
      let parent = (position - 1) / 2
      let other = heap[parent]
      guard event.precedes(other) else { break }
      heap[position] = other
      position = parent
    }
    heap[position] = event
  }

  private func keep(_ action: @escaping () -> Void) -> Int {
    guard let slot = freeSlots.popLast() else {
      actions.append(action)
      return actions.count - 1
    }
    actions[slot] = action
    return slot
  }

  func schedule(after delay: Duration, _ action: @escaping () -> Void) {
    schedule(at: now + delay, action)
  }

  /// Makes the next event happen. Returns false when there is none.
  func step() -> Bool {
    guard let event = heap.first else { return false }
    let last = heap.removeLast()
    if !heap.isEmpty { sink(last) }
    now = MonotonicTime(nanoseconds: event.time)
    let action = actions[event.slot].take()
    freeSlots.append(event.slot)
    action?()
    return true
  }

  /// Lets time pass in which nothing happens.
  func advance(to time: MonotonicTime) {
    now = max(now, time)
  }

  func removeAll() {
    let dropped = actions
    (heap, actions, freeSlots) = ([], [], [])
    _ = consume dropped
  }

  func note(_ text: @autoclosure () -> String) {
    guard let trace else { return }
    let microseconds = now.nanoseconds / 1_000
    trace("\(microseconds / 1_000_000).\(String(microseconds % 1_000_000 + 1_000_000).dropFirst()) \(text())")
  }

  /// Puts an event in the place of the first one.
  private func sink(_ event: Event) {
    var position = 0
    while true {
      var child = 2 * position + 1
      guard child < heap.count else { break }
      var least = heap[child]
      if child + 1 < heap.count {
        let other = heap[child + 1]
        if other.precedes(least) { (child, least) = (child + 1, other) }
      }
      guard least.precedes(event) else { break }
      heap[position] = least
      position = child
    }
    heap[position] = event
  }
}
