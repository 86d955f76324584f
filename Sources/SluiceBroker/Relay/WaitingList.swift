import SluiceIO

/// What waits for a route or a link, each until a deadline of its own.
protocol Waiter: AnyObject {
  var deadline: MonotonicTime { get }
  /// It waits no more.
  var isOver: Bool { get }
}

/// All that wait, in the order in which they came, and some that don't any more: what many leave one by one isn't searched through each time.
struct WaitingList<Element: Waiter> {
  private var waiting: [Element] = []
  /// How many of them don't wait any more.
  private var over = 0

  mutating func append(_ element: Element) { waiting.append(element) }

  /// One of them doesn't wait any more.
  mutating func left() {
    over += 1
    if over > 64, over > waiting.count / 2 { removeLeft() }
  }

  /// Those whose deadline has come.
  func late(at now: MonotonicTime) -> [Element] { waiting.filter { !$0.isOver && $0.deadline <= now } }

  /// The earliest deadline; nil when none waits.
  mutating func nextDeadline() -> MonotonicTime? {
    removeLeft()
    return waiting.map(\.deadline).min()
  }

  /// Takes all out: each of them is tried again, and may come back.
  mutating func takeAll() -> [Element] {
    defer { (waiting, over) = ([], 0) }
    return waiting
  }

  private mutating func removeLeft() {
    over = 0
    waiting.removeAll(where: \.isOver)
  }
}
