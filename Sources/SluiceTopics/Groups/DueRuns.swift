import SluiceIO

/// Runs of records to be delivered again, lowest offset first.
package struct DueRuns {
  package struct Run: Hashable, HeapElement {
    package var first: UInt64
    package var count: UInt64

    package var heapKey: UInt64 { first }
  }

  private var heap = MinHeap<Run>()

  package var first: Run? { heap.first }
  package var isEmpty: Bool { heap.isEmpty }
  package var count: Int { heap.count }

  /// Adds a run that overlaps no other.
  package mutating func insert(_ run: Run) {
    if run.count > 0 { heap.insert(run) }
  }

  /// Takes at most `count` records from the front.
  package mutating func take(_ count: UInt64) -> Run? {
    guard var run = heap.first else { return nil }
    guard run.count > count else { return heap.popFirst() }
    heap.updateFirst {
      $0.first += count
      $0.count -= count
    }
    run.count = count
    return run
  }

  package mutating func popFirst() -> Run? { heap.popFirst() }

  /// Drops records before an offset. Returns how many.
  package mutating func drop(before offset: UInt64) -> UInt64 {
    var dropped: UInt64 = 0
    while let run = heap.first, run.first < offset {
      if run.first + run.count <= offset {
        dropped += run.count
        heap.popFirst()
      } else {
        dropped += offset - run.first
        heap.updateFirst {
          $0.count -= offset - run.first
          $0.first = offset
        }
      }
    }
    return dropped
  }
}
