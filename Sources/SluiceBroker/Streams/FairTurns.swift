import SluiceTopics
import SluiceWire

/// The order of turns among elements that share one demand: the one that has waited longest is next, with a share that leaves some for the others.
struct FairTurns<Element> {
  private typealias Waiting = (since: UInt64, element: Element)

  /// Elements that have records, and found no demand.
  private var exhausted = ReadyQueue<Waiting>()
  /// Elements that were woken, and perhaps have records.
  private var ready = ReadyQueue<Waiting>()
  private var clock: UInt64 = 0

  var count: Int { exhausted.count + ready.count }

  /// `element` wants a turn.
  mutating func append(_ element: Element) {
    clock += 1
    ready.append((clock, element))
  }

  /// `element` has records, and there was no demand for them.
  mutating func demandExhausted(_ element: Element) {
    clock += 1
    exhausted.append((clock, element))
  }

  /// Whether a turn would be of use.
  func isTurn(available: UInt64) -> Bool {
    !ready.isEmpty || (available > 0 && !exhausted.isEmpty)
  }

  /// Takes out the next element. Its share is all that there is if no other wants any, and otherwise an equal part, at least one
  /// record. Without demand only elements that were woken get a turn, for what isn't records.
  mutating func next(available: UInt64) -> (element: Element, share: UInt64)? {
    let contenders = UInt64(count)
    guard available > 0 else { return ready.popFirst().map { ($0.element, 0) } }
    guard let element = popFirst()?.element else { return nil }
    let isUnlimited = available == Credit.unlimited
    return (element, isUnlimited ? available : max(available / contenders, 1))
  }

  private mutating func popFirst() -> Waiting? {
    guard let first = exhausted.first else { return ready.popFirst() }
    guard let second = ready.first, second.since < first.since else { return exhausted.popFirst() }
    return ready.popFirst()
  }

  /// Forgets elements that don't want turns any more.
  mutating func removeAll(where isGone: (Element) -> Bool) {
    exhausted.removeAll { isGone($0.element) }
    ready.removeAll { isGone($0.element) }
  }
}
