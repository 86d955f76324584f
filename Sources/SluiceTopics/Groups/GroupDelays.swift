import SluiceIO

/// Records of a group that wait for the time of their retry, earliest first.
///
/// A record that is settled while it waits stays in the heap until its time, or until most of the heap is such records.
struct GroupDelays: Sendable {
  struct Wait: Hashable, Sendable, HeapElement {
    var time: MonotonicTime
    var offset: UInt64

    var heapKey: MonotonicTime { time }
  }

  private var heap = MinHeap<Wait>()
  /// Records that wait.
  private(set) var count = 0

  /// The earliest; it may be settled.
  var first: Wait? { heap.first }
  /// For how many there is memory.
  var reserved: Int { heap.count }

  mutating func insert(_ wait: Wait) {
    count += 1
    heap.insert(wait)
  }

  /// A record waits no longer.
  mutating func end() { count -= 1 }

  /// Removes settled records from the front, and all of them once they are most of the heap.
  ///
  /// - Parameter isWaiting: whether a record still waits for that time.
  mutating func dropSettled(_ isWaiting: (Wait) -> Bool) {
    if heap.count > 2 * count + 64 { heap.keep(isWaiting) }
    while let first = heap.first, !isWaiting(first) { heap.popFirst() }
  }

  /// Removes the earliest, whether it is settled or not.
  mutating func removeFirst() { heap.popFirst() }
}
