import SluiceIO

/// Records of a group that wait for the time of their retry: a heap, earliest first.
///
/// A record that is settled while it waits stays in the heap until its time, or until most of the heap is such records.
struct GroupDelays: Sendable {
  struct Wait: Hashable, Sendable {
    var time: MonotonicTime
    var offset: UInt64
  }

  private var heap: [Wait] = []
  /// Records that wait.
  private(set) var count = 0

  /// The earliest; it may be settled.
  var first: Wait? { heap.first }
  /// For how many there is memory.
  var reserved: Int { heap.count }

  mutating func insert(_ wait: Wait) {
    count += 1
    heap.append(wait)
    var index = heap.count - 1
    while index > 0 {
      let parent = (index - 1) / 2
      guard heap[index].time < heap[parent].time else { break }
      heap.swapAt(index, parent)
      index = parent
    }
  }

  /// A record waits no longer.
  mutating func end() { count -= 1 }

  /// Removes settled records from the front, and all of them once they are most of the heap.
  ///
  /// - Parameter isWaiting: whether a record still waits for that time.
  mutating func dropSettled(_ isWaiting: (Wait) -> Bool) {
    if heap.count > 2 * count + 64 {
      heap.removeAll { !isWaiting($0) }
      // A sorted array is a heap.
      heap.sort { $0.time < $1.time }
    }
    while let first = heap.first, !isWaiting(first) { removeFirst() }
  }

  /// Removes the earliest from the heap, whether it is settled or not.
  mutating func removeFirst() {
    guard let last = heap.popLast(), !heap.isEmpty else { return }
    heap[0] = last
    var index = 0
    while true {
      var least = index
      for child in [2 * index + 1, 2 * index + 2]
      where child < heap.count && heap[child].time < heap[least].time { least = child }
      if least == index { return }
      heap.swapAt(index, least)
      index = least
    }
  }
}
