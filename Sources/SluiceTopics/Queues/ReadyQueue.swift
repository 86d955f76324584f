/// First in, first out, over one array: taking from the front moves an index, and the array starts over when it runs empty.
@usableFromInline package struct ReadyQueue<Element> {
  @usableFromInline var elements: [Element] = []
  @usableFromInline var head = 0

  @inlinable package init() {}

  @inlinable package var isEmpty: Bool { head == elements.count }
  @inlinable package var count: Int { elements.count - head }
  @inlinable package var first: Element? { head < elements.count ? elements[head] : nil }

  @inlinable package mutating func append(_ element: Element) {
    // What was taken is dropped before the array would grow for it.
    if head > 0, elements.count == elements.capacity {
      elements.removeFirst(head)
      head = 0
    }
    elements.append(element)
  }

  @inlinable package mutating func popFirst() -> Element? {
    guard head < elements.count else { return nil }
    // Of many queues there is one element a turn.
    if elements.count == 1, elements.capacity <= 64 { return elements.removeLast() }
    let element = elements[head]
    head += 1
    if head == elements.count {
      elements.removeAll(keepingCapacity: elements.capacity <= 64)
      head = 0
    }
    return element
  }

  @inlinable package mutating func removeAll(where isGone: (Element) -> Bool) {
    elements.removeFirst(head)
    head = 0
    elements.removeAll(where: isGone)
  }
}

extension ReadyQueue: Sendable where Element: Sendable {}

extension Array {
  /// Removes all elements and keeps the memory. Of one element, which is what a list of a turn has where messages come one by one, that costs a tenth of
  /// ``removeAll(keepingCapacity:)``.
  @inlinable package mutating func removeAllInPlace() {
    if count == 1 { removeLast() } else { removeAll(keepingCapacity: true) }
  }
}
