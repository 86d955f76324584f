import Glibc
import SluiceIO
import Synchronization

/// An ordered queue of work for a thread of its own, with a limit on waiting work.
///
/// The first item starts the thread.
final class WorkQueue<Item: Sendable>: Sendable {
  private struct State {
    var items: [(item: Item, weight: Int)] = []
    var weight = 0
    var isWorking = false
    var isStarted = false
    /// Whether a thread waits in `add` for room.
    var isAwaited = false
    var isClosed = false
    /// Called after the work that was running when the queue was closed.
    var closed: (@Sendable () -> Void)?
  }

  private let limit: Int
  private let work: @Sendable (Item) -> Void
  private let state = Mutex(State())
  private let hasWork = Semaphore()
  private let hasRoom = Semaphore()

  /// - Parameters:
  ///   - limit: the most weight that may wait.
  ///   - work: called on the queue's thread, once for each item, in order.
  init(limit: Int, work: @escaping @Sendable (Item) -> Void) {
    self.limit = limit
    self.work = work
  }

  /// Queues work for the thread. If more than the limit waits, blocks until there is room or `isImpatient` returns true. From one thread only.
  func add(_ item: Item, weight: Int, isImpatient: () -> Bool) {
    while true {
      let mustWait = state.withLock { state in
        guard state.weight > limit, !state.isClosed else { return false }
        state.isAwaited = true
        return true
      }
      guard mustWait, !isImpatient() else { break }
      hasRoom.wait(milliseconds: 200)
    }
    let mustStart = state.withLock { state in
      guard !state.isClosed else { return false }
      state.items.append((item, weight))
      state.weight += weight
      defer { state.isStarted = true }
      return !state.isStarted
    }
    if mustStart { Threads.start { self.run() } }
    hasWork.signal()
  }

  /// Whether no item waits or is being worked on.
  var isIdle: Bool { state.withLock { $0.items.isEmpty && !$0.isWorking } }

  /// Drops waiting and later work. Calls `closed` on the queue's thread when the present work is done, or at once if there is none.
  func close(_ closed: @escaping @Sendable () -> Void) {
    let isIdle = state.withLock { state in
      state.isClosed = true
      state.items = []
      state.weight = 0
      if state.isWorking { state.closed = closed }
      return !state.isWorking
    }
    if isIdle { closed() }
  }

  private func run() {
    while true {
      hasWork.wait()
      // Reversed, so that each item is released as soon as it is done.
      var batch = state.withLock { state in
        defer { state.items = [] }
        state.isWorking = !state.items.isEmpty
        return Array(state.items.reversed())
      }
      while let (item, weight) = batch.popLast() {
        if state.withLock({ $0.isClosed }) { break }
        work(item)
        done(weight)
      }
      let closed = state.withLock { state in
        state.isWorking = false
        defer { state.closed = nil }
        return state.closed
      }
      closed?()
    }
  }

  private func done(_ weight: Int) {
    let isAwaited = state.withLock { state in
      state.weight = max(0, state.weight - weight)
      guard state.isAwaited, state.weight <= limit else { return false }
      state.isAwaited = false
      return true
    }
    if isAwaited { hasRoom.signal() }
  }
}
