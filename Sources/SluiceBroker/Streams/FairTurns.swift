import SluiceTopics
import SluiceWire

/// The order of turns among elements that share one demand: the element that has waited longest is next, with a share that leaves some for the others.
struct FairTurns<Element> {
  private typealias Waiting = (since: UInt64, element: Element)

  /// Elements that have records, and found no demand.
  private var exhausted = ReadyQueue<Waiting>()
  /// Elements that were woken, and may have records.
  private var ready = ReadyQueue<Waiting>()
  private var clock: UInt64 = 0

  var count: Int { exhausted.count + ready.count }

  /// Queues `element` for a turn.
  mutating func append(_ element: Element) {
    clock += 1
    ready.append((clock, element))
  }

  /// Queues `element`, which has records, until there is demand.
  mutating func demandExhausted(_ element: Element) {
    clock += 1
    exhausted.append((clock, element))
  }

  /// Whether the next element could do something in its turn.
  func isTurn(available: UInt64) -> Bool {
    !ready.isEmpty || (available > 0 && !exhausted.isEmpty)
  }

  /// Removes the next element and returns it with its share. The share is all demand if no other element waits, and otherwise an equal part, at least one
  /// record. Without demand only woken elements get a turn, to send frames without records.
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

  /// Removes elements that no longer want turns.
  mutating func removeAll(where isGone: (Element) -> Bool) {
    exhausted.removeAll { isGone($0.element) }
    ready.removeAll { isGone($0.element) }
  }
}
