import SluiceIO

/// A stream or request that waits for a route or a link, until its own deadline.
protocol Waiter: AnyObject {
  var deadline: MonotonicTime { get }
  /// Whether it no longer waits.
  var isOver: Bool { get }
}

/// All waiting elements in the order of their arrival, and some that no longer wait: the list isn't searched each time one of many leaves.
struct WaitingList<Element: Waiter> {
  private var waiting: [Element] = []
  /// The number of elements that no longer wait.
  private var over = 0

  mutating func append(_ element: Element) { waiting.append(element) }

  /// Called when an element no longer waits.
  mutating func left() {
    over += 1
    if over > 64, over > waiting.count / 2 { removeLeft() }
  }

  /// Returns the elements whose deadlines have passed.
  func late(at now: MonotonicTime) -> [Element] { waiting.filter { !$0.isOver && $0.deadline <= now } }

  /// Returns the earliest deadline; nil when none waits.
  mutating func nextDeadline() -> MonotonicTime? {
    removeLeft()
    return waiting.map(\.deadline).min()
  }

  /// Removes and returns all elements, to be tried again. They may be added again.
  mutating func takeAll() -> [Element] {
    defer { (waiting, over) = ([], 0) }
    return waiting
  }

  private mutating func removeLeft() {
    over = 0
    waiting.removeAll(where: \.isOver)
  }
}
