import SluiceWire

/// Whose turn it is of those that share one demand: the one that has waited longest, with a share that leaves something for the others.
///
/// A value: who wants a turn and what there is to share come in, who gets how much comes out.
struct FairTurns<Element> {
  /// Who waits, and since when.
  private typealias Waiting = (since: UInt64, element: Element)

  /// Those that have records, and found no demand.
  private var starved = ReadyQueue<Waiting>()
  /// Those that have news, perhaps records.
  private var ready = ReadyQueue<Waiting>()
  private var clock: UInt64 = 0

  var count: Int { starved.count + ready.count }

  /// `element` wants a turn: it has news, or wants to go on.
  mutating func append(_ element: Element) {
    clock += 1
    ready.append((clock, element))
  }

  /// `element` has records, and there was no demand for them.
  mutating func starve(_ element: Element) {
    clock += 1
    starved.append((clock, element))
  }

  /// Whether anybody could do anything.
  func isTurn(available: UInt64) -> Bool {
    !ready.isEmpty || (available > 0 && !starved.isEmpty)
  }

  /// Takes out whose turn it is. Its share is all that there is if nobody else wants any, and otherwise an equal part, at least one
  /// record; without demand it is nothing, for those whose news may not be records.
  mutating func next(available: UInt64) -> (element: Element, share: UInt64)? {
    let contenders = UInt64(count)
    guard available > 0 else { return ready.popFirst().map { ($0.element, 0) } }
    guard let element = popFirst()?.element else { return nil }
    let isUnlimited = available == Credit.unlimited
    return (element, isUnlimited ? available : max(available / contenders, 1))
  }

  private mutating func popFirst() -> Waiting? {
    guard let first = starved.first else { return ready.popFirst() }
    guard let second = ready.first, second.since < first.since else { return starved.popFirst() }
    return ready.popFirst()
  }

  /// Forgets those that don't want turns any more.
  mutating func removeAll(where isGone: (Element) -> Bool) {
    starved.removeAll { isGone($0.element) }
    ready.removeAll { isGone($0.element) }
  }
}
