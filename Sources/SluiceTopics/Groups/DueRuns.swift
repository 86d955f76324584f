/// A heap of runs of records to be delivered again, lowest offset first.
package struct DueRuns {
  package struct Run: Hashable {
    package var first: UInt64
    package var count: UInt64
  }

  private var heap: [Run] = []

  package var first: Run? { heap.first }
  package var isEmpty: Bool { heap.isEmpty }
  package var count: Int { heap.count }

  /// Adds a run that overlaps no other.
  package mutating func insert(_ run: Run) {
    guard run.count > 0 else { return }
    heap.append(run)
    var index = heap.count - 1
    while index > 0 {
      let parent = (index - 1) / 2
      guard heap[index].first < heap[parent].first else { break }
      heap.swapAt(index, parent)
      index = parent
    }
  }

  /// Takes at most `count` records from the front.
  package mutating func take(_ count: UInt64) -> Run? {
    guard var run = heap.first else { return nil }
    guard run.count > count else { return popFirst() }
    heap[0].first += count
    heap[0].count -= count
    run.count = count
    return run
  }

  package mutating func popFirst() -> Run? {
    guard let run = heap.first else { return nil }
    let last = heap.removeLast()
    guard !heap.isEmpty else { return run }
    heap[0] = last
    var index = 0
    while true {
      var least = index
      for child in [2 * index + 1, 2 * index + 2]
      where child < heap.count && heap[child].first < heap[least].first { least = child }
      if least == index { return run }
      heap.swapAt(index, least)
      index = least
    }
  }

  /// Drops records before an offset. Returns how many.
  package mutating func drop(before offset: UInt64) -> UInt64 {
    var dropped: UInt64 = 0
    while let run = heap.first, run.first < offset {
      if run.first + run.count <= offset {
        dropped += run.count
        _ = popFirst()
      } else {
        dropped += offset - run.first
        heap[0].count -= offset - run.first
        heap[0].first = offset
      }
    }
    return dropped
  }
}
