/// Hands the values of a publisher to one task that waits for them.
///
/// Each wait asks for one value. Nothing is kept here but the end of the stream.
final class AsyncBridge<Input, Failure: Error>: Subscriber, @unchecked Sendable {
  // Sendable because the lock guards all fields, and a value goes straight from upstream to the one task that waits.

  typealias Continuation = CheckedContinuation<Answer, Never>

  /// The result of a wait.
  struct Answer: @unchecked Sendable {
    // Handed from the thread that delivers to the task that waits, and not used by the former again.
    let event: Result<Input?, Failure>
  }

  private enum State {
    case awaiting(Subscribers.Demand)
    case open(any Subscription)
    case ended(Subscribers.Completion<Failure>?)
  }

  private let lock = Lock()
  private var state = State.awaiting(.none)  // guarded by the lock
  private var waiting: [Continuation] = []  // guarded by the lock

  func receive(subscription: any Subscription) {
    var demand = Subscribers.Demand.none
    let isAccepted = lock.withLock {
      guard case .awaiting(let pending) = state else { return false }
      state = .open(subscription)
      demand = pending
      return true
    }
    subscription.start(requesting: isAccepted ? demand : nil)
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    var continuation: Continuation?
    lock.withLock {
      if case .open = state, !waiting.isEmpty { continuation = waiting.removeFirst() }
    }
    continuation?.resume(returning: Answer(event: .success(input)))
    return .none
  }

  func receive(completion: Subscribers.Completion<Failure>) {
    let (_, waiting) = end(completion)
    resume(waiting, with: completion)
  }

  func cancel() {
    let (subscription, waiting) = end(nil)
    subscription?.cancel()
    resume(waiting, with: .finished)
  }

  /// Ends it, unless it has ended. An error is given to the first that waits, or is kept for the next.
  private func end(_ completion: Subscribers.Completion<Failure>?) -> ((any Subscription)?, [Continuation]) {
    var subscription: (any Subscription)?
    var waiting: [Continuation] = []
    lock.withLock {
      switch state {
      case .ended: return
      case .open(let open): subscription = open
      case .awaiting: break
      }
      swap(&waiting, &self.waiting)
      state = .ended(waiting.isEmpty ? completion : nil)
    }
    return (subscription, waiting)
  }

  private func resume(_ waiting: [Continuation], with completion: Subscribers.Completion<Failure>) {
    for (index, continuation) in waiting.enumerated() {
      if index == 0, case .failure(let error) = completion {
        continuation.resume(returning: Answer(event: .failure(error)))
      } else {
        continuation.resume(returning: Answer(event: .success(nil)))
      }
    }
  }

  /// Asks for the next value and waits for it. Cancelling the task cancels the subscription.
  ///
  /// The request is made in the caller's context, so that iterating on an actor needs no hop for each value.
  func next(isolation: isolated (any Actor)? = #isolation) async -> Answer {
    await withTaskCancellationHandler {
      await withCheckedContinuation(isolation: isolation) { wait($0) }
    } onCancel: {
      cancel()
    }
  }

  /// Asks for the next value and waits for it, even if the task is cancelled.
  func nextIgnoringCancellation(isolation: isolated (any Actor)? = #isolation) async -> Answer {
    await withCheckedContinuation { wait($0) }
  }

  private func wait(_ continuation: Continuation) {
    var subscription: (any Subscription)?
    var answer: Answer?
    lock.withLock {
      switch state {
      case .awaiting(let demand):
        waiting.append(continuation)
        state = .awaiting(demand + 1)
      case .open(let open):
        waiting.append(continuation)
        subscription = open
      case .ended(let completion):
        state = .ended(nil)
        if case .failure(let error) = completion {
          answer = Answer(event: .failure(error))
        } else {
          answer = Answer(event: .success(nil))
        }
      }
    }
    if let answer {
      continuation.resume(returning: answer)
    } else {
      subscription?.request(.max(1))
    }
  }
}
