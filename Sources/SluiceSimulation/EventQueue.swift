/// Future events, in their order.
///
/// The heap has no references, so that moving an event in it costs no counting of them.
struct EventQueue {
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

  /// Not a closure by itself: in an array, it would be wrapped in another one.
  struct Action {
    var run: () -> Void
  }

  private var heap: [Event] = []
  private var actions: [Action?] = []
  private var freeSlots: [Int] = []
  private var pushed: UInt64 = 0

  /// When the first event happens, in nanoseconds.
  var nextTime: UInt64? { heap.first?.time }

  /// Adds an event.
  ///
  /// - Parameters:
  ///   - time: when it happens, in nanoseconds.
  ///   - tieBreak: events of one time happen in the order of this.
  ///   - action: what happens.
  mutating func push(_ time: UInt64, tieBreak: UInt64, _ action: Action) {
    let slot: Int
    if let free = freeSlots.popLast() {
      slot = free
      actions[slot] = action
    } else {
      slot = actions.count
      actions.append(action)
    }
    let event = Event(time: time, tieBreak: tieBreak, order: pushed, slot: slot)
    pushed += 1
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

  /// Removes the first event; nil when there is none.
  mutating func pop() -> (time: UInt64, action: Action)? {
    guard let event = heap.first, let action = actions[event.slot] else { return nil }
    actions[event.slot] = nil
    freeSlots.append(event.slot)
    let last = heap.removeLast()
    if !heap.isEmpty { sink(last) }
    return (event.time, action)
  }

  /// Puts an event in the place of the first one.
  private mutating func sink(_ event: Event) {
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
