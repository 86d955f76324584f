import PortableCombine

/// The scope within which ids distinguish effects.
///
/// Each store has its own, so equal ids in two stores, or in two tests, have nothing to do with one
/// another. Stores that are to cancel each other's effects are given the same scope; so is a part of the
/// program that cancels from outside.
///
/// May be used from any thread. Ids are hashed and compared with a lock held, and must not use the scope
/// meanwhile.
public final class EffectScope: @unchecked Sendable {
  // Sendable because the lock guards the table, and what is in it has locks of its own.

  private let lock = Lock()
  // Guarded by the lock.
  private var inFlight: [AnyHashable: [Int: any EffectInFlight]] = [:]  // by ticket
  private var lastTicket = 0

  /// A scope in which nothing runs.
  public init() {}

  /// Ends the effects in flight with this id: their sources are cancelled, and their subscribers get a
  /// finish.
  public func cancel<ID: Hashable & Sendable>(id: ID) { stop(id) }

  func stop(_ id: AnyHashable) {
    let stopped = lock.withLock { inFlight.removeValue(forKey: id) }
    for (_, effect) in (stopped ?? [:]).sorted(by: { $0.key < $1.key }) {
      effect.stop()
    }
  }

  /// Whether an effect with this id is in flight.
  public func isInFlight<ID: Hashable & Sendable>(id: ID) -> Bool {
    lock.withLock { inFlight[id] != nil }
  }

  func add(_ effect: any EffectInFlight, id: AnyHashable) -> Int {
    lock.withLock {
      lastTicket += 1
      inFlight[id, default: [:]][lastTicket] = effect
      return lastTicket
    }
  }

  func remove(id: AnyHashable, ticket: Int) {
    let removed = lock.withLock {
      let removed = inFlight[id]?.removeValue(forKey: ticket)
      if inFlight[id]?.isEmpty == true { inFlight[id] = nil }
      return removed
    }
    withExtendedLifetime(removed) {}
  }
}

/// An effect that can be stopped from outside.
protocol EffectInFlight: AnyObject {
  /// Cancels the source, and finishes.
  func stop()
}
