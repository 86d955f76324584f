/// An element of a ``MinHeap``, which is ordered by a key.
@usableFromInline package protocol HeapElement {
  associatedtype HeapKey: Comparable
  var heapKey: HeapKey { get }
}

/// A binary heap: the element with the least key first. Elements with equal keys have no order.
@frozen @usableFromInline
package struct MinHeap<Element: HeapElement> {
  @usableFromInline var elements: [Element] = []

  @inlinable
  package init() {}

  @inlinable package var first: Element? { elements.first }
  @inlinable package var isEmpty: Bool { elements.isEmpty }
  @inlinable package var count: Int { elements.count }

  @inlinable
  package mutating func insert(_ element: Element) {
    elements.append(element)
    var position = elements.count - 1
    while position > 0 {
      let parent = (position - 1) / 2
      guard elements[position].heapKey < elements[parent].heapKey else { break }
      elements.swapAt(position, parent)
      position = parent
    }
  }

  /// Removes and returns the first element; nil if there is none.
  @inlinable @discardableResult
  package mutating func popFirst() -> Element? {
    guard let first = elements.first else { return nil }
    elements.swapAt(0, elements.count - 1)
    elements.removeLast()
    var position = 0
    while true {
      var child = 2 * position + 1
      guard child < elements.count else { break }
      if child + 1 < elements.count, elements[child + 1].heapKey < elements[child].heapKey { child += 1 }
      guard elements[child].heapKey < elements[position].heapKey else { break }
      elements.swapAt(position, child)
      position = child
    }
    return first
  }

  /// Changes the first element, if there is one.
  ///
  /// - Parameter body: must leave it the first one.
  @inlinable
  package mutating func updateFirst(_ body: (inout Element) -> Void) {
    if !elements.isEmpty { body(&elements[0]) }
  }

  /// Removes the other elements.
  ///
  /// - Parameter isKept: called in the order of the keys.
  @inlinable
  package mutating func keep(_ isKept: (Element) -> Bool) {
    // A sorted array is a heap.
    elements.sort { $0.heapKey < $1.heapKey }
    elements.removeAll { !isKept($0) }
  }
}

extension MinHeap: Sendable where Element: Sendable {}
