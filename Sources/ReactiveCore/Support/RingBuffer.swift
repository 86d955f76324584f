/// A queue in an array that is used round and round: adding and taking are O(1), and nothing is allocated once it has grown.
@usableFromInline
struct RingBuffer<Element> {
  @usableFromInline var slots: ContiguousArray<Element?> = []
  @usableFromInline var head = 0
  @usableFromInline var count = 0

  @inlinable init() {}

  @inlinable var isEmpty: Bool { count == 0 }

  @inlinable
  mutating func append(_ element: Element) {
    if count == slots.count { grow() }
    slots[wrapped(head + count)] = element
    count += 1
  }

  @inlinable
  mutating func popFirst() -> Element? {
    guard count > 0 else { return nil }
    let element = slots[head].take()
    head = wrapped(head + 1)
    count -= 1
    return element
  }

  /// Removes one element from the middle. O(n).
  @inlinable
  mutating func remove(at index: Int) -> Element? {
    let element = slots[wrapped(head + index)].take()
    for i in index..<(count - 1) {
      slots.swapAt(wrapped(head + i), wrapped(head + i + 1))
    }
    count -= 1
    return element
  }

  /// Puts an element in the place of the first that fits. O(n).
  ///
  /// - Returns: The previous element; nil without a change if none fits.
  @inlinable
  mutating func replace(with element: Element, where fits: (Element) -> Bool) -> Element? {
    for index in 0..<count {
      let slot = wrapped(head + index)
      if let old = slots[slot], fits(old) {
        slots[slot] = element
        return old
      }
    }
    return nil
  }

  /// The elements, first to last.
  @inlinable var elements: [Element] {
    (0..<count).compactMap { slots[wrapped(head + $0)] }
  }

  @inlinable
  func wrapped(_ index: Int) -> Int { index < slots.count ? index : index - slots.count }

  @inlinable
  mutating func grow() {
    var larger = ContiguousArray<Element?>()
    larger.reserveCapacity(Swift.max(4, count * 2))
    for index in 0..<count {
      larger.append(slots[wrapped(head + index)].take())
    }
    while larger.count < Swift.max(4, count * 2) {
      larger.append(nil)
    }
    slots = larger
    head = 0
  }
}
