import Synchronization

/// Collects what happens on other threads and lets a test wait for it.
///
/// Waiting suspends the task and blocks no thread, for what is waited for may need the thread.
package final class EventLog<Event: Sendable>: Sendable {
  private struct Waiter {
    var isSatisfied: @Sendable ([Event]) -> Bool
    var continuation: CheckedContinuation<Bool, Never>
  }

  private struct State {
    var events: [Event] = []
    var waiters: [Int: Waiter] = [:]
    var lastTicket = 0
  }

  private let state = Mutex(State())

  package init() {}

  package var events: [Event] { state.withLock { $0.events } }

  package func append(_ event: Event) {
    let satisfied = state.withLock { state in
      state.events.append(event)
      let events = state.events
      let satisfied = state.waiters.filter { $0.value.isSatisfied(events) }
      for ticket in satisfied.keys { state.waiters[ticket] = nil }
      return satisfied.values.map(\.continuation)
    }
    for continuation in satisfied { continuation.resume(returning: true) }
  }

  /// Waits until the events are as wanted.
  ///
  /// - Returns: Whether they were within a minute.
  package func wait(until isSatisfied: @escaping @Sendable ([Event]) -> Bool) async -> Bool {
    let ticket = state.withLock {
      $0.lastTicket += 1
      return $0.lastTicket
    }
    let deadline = Task {
      try await Task.sleep(for: .seconds(600))
      state.withLock { $0.waiters.removeValue(forKey: ticket) }?.continuation.resume(returning: false)
    }
    defer { deadline.cancel() }
    return await withCheckedContinuation { continuation in
      let isSatisfiedNow = state.withLock {
        if isSatisfied($0.events) { return true }
        $0.waiters[ticket] = Waiter(isSatisfied: isSatisfied, continuation: continuation)
        return false
      }
      if isSatisfiedNow { continuation.resume(returning: true) }
    }
  }

  /// Waits for a number of events.
  package func wait(count: Int) async -> Bool {
    await wait { $0.count >= count }
  }
}
