import SluiceWire

/// Whose turn it is of those that share one demand: the one that has waited longest, with a share that leaves something for the others.
///
/// A value: who wants a turn and what there is to share come in, who gets how much comes out.
struct FairTurns<Element> {
  /// Those that have records, and found no demand; the first has waited longest.
  private var starved = ReadyQueue<Element>()
  /// Those that have news, perhaps records.
  private var ready = ReadyQueue<Element>()

  var count: Int { starved.count + ready.count }

  /// `element` wants a turn: it has news, or wants to go on.
  mutating func append(_ element: Element) {
    ready.append(element)
  }

  /// `element` has records, and there was no demand for them.
  mutating func starve(_ element: Element) {
    starved.append(element)
  }

  /// Whether anybody could do anything.
  func isTurn(available: UInt64) -> Bool {
    !ready.isEmpty || (available > 0 && !starved.isEmpty)
  }

  /// Takes out whose turn it is. Its share is all that there is if nobody else wants any, and otherwise an equal part, at least one
  /// record; without demand it is nothing, for those whose news may not be records.
  mutating func next(available: UInt64) -> (element: Element, share: UInt64)? {
    let contenders = UInt64(count)
    guard available > 0 else { return ready.popFirst().map { ($0, 0) } }
    guard let element = starved.popFirst() ?? ready.popFirst() else { return nil }
    let isUnlimited = available == Credit.unlimited
    return (element, isUnlimited ? available : max(available / contenders, 1))
  }

  /// Forgets those that don't want turns any more.
  mutating func removeAll(where isGone: (Element) -> Bool) {
    starved.removeAll(where: isGone)
    ready.removeAll(where: isGone)
  }
}
