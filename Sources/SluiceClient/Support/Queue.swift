/// A first-in, first-out queue that doesn't move its elements on each removal.
struct Queue<Element> {
  private var elements: [Element?] = []
  private var head = 0

  var count: Int { elements.count - head }

  var isEmpty: Bool { head == elements.count }

  var first: Element? {
    get { isEmpty ? nil : elements[head] }
    set { elements[head] = newValue }
  }

  var last: Element? {
    get { isEmpty ? nil : elements[elements.count - 1] }
    set { elements[elements.count - 1] = newValue }
  }

  mutating func append(_ element: Element) {
    elements.append(element)
  }

  mutating func removeFirst() {
    _ = popFirst()
  }

  mutating func popFirst() -> Element? {
    guard !isEmpty else { return nil }
    let element = elements[head]
    elements[head] = nil
    head += 1
    if head == elements.count {
      elements.removeAll(keepingCapacity: elements.capacity <= 256)
      head = 0
    } else if head >= 64, head * 2 >= elements.count {
      elements.removeFirst(head)
      head = 0
    }
    return element
  }

  /// Removes and returns the first element that `matches`, at any position.
  mutating func removeFirst(where matches: (Element) -> Bool) -> Element? {
    guard let index = elements[head...].firstIndex(where: { $0.map(matches) ?? false }) else { return nil }
    return elements.remove(at: index)
  }

  /// Removes the last element among the last `count` for which `matches` returns true. Stops searching if it returns nil. Returns whether one was removed.
  mutating func removeLast(among count: Int, where matches: (Element) -> Bool?) -> Bool {
    for index in elements.indices[head...].suffix(count).reversed() {
      guard let element = elements[index], let isWanted = matches(element) else { return false }
      if isWanted {
        elements.remove(at: index)
        return true
      }
    }
    return false
  }

  mutating func removeAll() {
    elements = []
    head = 0
  }
}
