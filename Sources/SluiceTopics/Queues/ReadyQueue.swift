/// First in, first out: the first element, and an array of the others, which starts over when it runs empty. Taking from its front moves an index.
///
/// A queue that has one element at a time, as those of most connections have, allocates nothing.
@usableFromInline package struct ReadyQueue<Element> {
  @usableFromInline var front: Element?
  /// The elements after the first; those before `head` were taken.
  @usableFromInline var others: [Element] = []
  @usableFromInline var head: Int32 = 0

  @inlinable package init() {}

  @inlinable package var isEmpty: Bool { front == nil }
  @inlinable package var count: Int { front == nil ? 0 : others.count - Int(head) + 1 }
  @inlinable package var first: Element? { front }

  @inlinable package mutating func append(_ element: Element) {
    guard front != nil else { return front = element }
    // Removes the elements already taken, so that the array need not grow.
    if head > 0, others.count == others.capacity {
      others.removeFirst(Int(head))
      head = 0
    }
    others.append(element)
  }

  @inlinable package mutating func popFirst() -> Element? {
    guard Int(head) < others.count else { return front.take() }
    let element = front
    front = others[Int(head)]
    head += 1
    if Int(head) == others.count {
      others.removeAll(keepingCapacity: others.capacity <= 64)
      head = 0
    }
    return element
  }

  @inlinable package mutating func removeAll(where isGone: (Element) -> Bool) {
    others.removeFirst(Int(head))
    head = 0
    if let first = front, isGone(first) { front = nil }
    others.removeAll(where: isGone)
    if front == nil, !others.isEmpty { front = others.removeFirst() }
  }
}

extension ReadyQueue: Sendable where Element: Sendable {}
