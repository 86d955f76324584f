import Synchronization

/// A signal of an `EpollLoop`.
///
/// A flag says whether it has been fired and not handled; the thread that sets it puts the signal itself on the loop's list. So
/// firing allocates nothing, and firing again before the loop came round costs one atomic exchange.
///
/// Unchecked: `handler` is called on the loop only; `next` belongs to the thread that set the flag until the signal is on the
/// list, and to the list from then on.
@safe
final class EpollSignal: LoopSignal, @unchecked Sendable {
  private let loop: EpollLoop
  private let handler: () -> Void
  private let fired = Atomic<Bool>(false)
  fileprivate var next: Unmanaged<EpollSignal>?

  init(loop: EpollLoop, handler: @escaping () -> Void) {
    self.loop = loop
    self.handler = handler
  }

  func fire() {
    if loop.isCurrent {
      // On the loop's own thread plain loads suffice: only this thread clears the flag.
      if fired.load(ordering: .relaxed) { return }
      if fired.exchange(true, ordering: .acquiringAndReleasing) { return }
      loop.deliverLocally(self)
    } else {
      // An exchange even when the flag is set: its release makes what was written before visible to the handler.
      if fired.exchange(true, ordering: .acquiringAndReleasing) { return }
      loop.deliver(self)
    }
  }

  /// On the loop. A signal that is fired after this runs the handler again.
  func run() {
    _ = fired.exchange(false, ordering: .acquiringAndReleasing)
    handler()
  }
}

/// Signals fired by other threads, waiting for their loop: a stack with single pushes that is emptied as a whole. It
/// therefore needs no lock, and no protection from reuse of its nodes.
@safe
struct SignalStack: ~Copyable {
  private let top = unsafe Atomic<Unmanaged<EpollSignal>?>(nil)

  var isEmpty: Bool { unsafe top.load(ordering: .sequentiallyConsistent) == nil }

  /// From any thread. The stack keeps the signal until it is taken.
  func push(_ signal: EpollSignal) {
    let node = unsafe Unmanaged.passRetained(signal)
    var expected = unsafe top.load(ordering: .relaxed)
    while true {
      unsafe signal.next = unsafe expected
      let (exchanged, found) = unsafe top.weakCompareExchange(
        expected: expected, desired: node, successOrdering: .sequentiallyConsistent,
        failureOrdering: .relaxed)
      if exchanged { return }
      unsafe expected = unsafe found
    }
  }

  /// Appends what was pushed to `batch`, oldest first. One taker at a time.
  func take(into batch: inout [EpollSignal]) {
    guard unsafe top.load(ordering: .relaxed) != nil else { return }
    let start = batch.count
    var node = unsafe top.exchange(nil, ordering: .acquiring)
    while let current = unsafe node {
      let signal = unsafe current.takeRetainedValue()
      unsafe node = unsafe signal.next
      unsafe signal.next = nil
      batch.append(signal)
    }
    batch[start...].reverse()
  }
}
