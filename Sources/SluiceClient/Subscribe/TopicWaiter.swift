import ReactiveCore

/// The subscriber behind an iterator of a topic's values: requests a value when the task waits for one, and `ahead` values more.
// @unchecked: `lock` guards mutable state; the loop passes each value to the one task that waits.
final class TopicWaiter<Value>: Subscriber, @unchecked Sendable {
  typealias Input = Value
  typealias Failure = ClientError

  /// The result of a wait.
  // @unchecked: passed from the loop to the task; the loop doesn't use it again.
  struct Answer: @unchecked Sendable {
    let outcome: Result<Value?, ClientError>
  }

  private typealias Continuation = CheckedContinuation<Answer, Never>

  private enum Phase {
    case open
    /// The topic has ended; the task gets the end behind the values.
    case ended(Subscribers.Completion<ClientError>)
    case cancelled
  }

  private let ahead: Int
  private let lock = Lock()
  private var phase = Phase.open
  private var subscription: (any Subscription)?
  private var values = Queue<Value>()
  /// Requested values that haven't arrived.
  private var owed = 0
  private var waiting: Continuation?

  init(ahead: Int) {
    self.ahead = max(ahead, 0)
  }

  // MARK: The topic's side, on the loop

  func receive(subscription: any Subscription) {
    let wanted: Int? = lock.withLock {
      guard case .open = phase, self.subscription == nil else { return nil }
      self.subscription = subscription
      return topUp()
    }
    guard let wanted else { return subscription.cancel() }
    if wanted > 0 { subscription.request(.max(wanted)) }
  }

  func receive(_ value: Value) -> Subscribers.Demand {
    let continuation: Continuation? = lock.withLock {
      guard case .open = phase else { return nil }
      owed -= 1
      if let waiting = waiting.take() { return waiting }
      values.append(value)
      return nil
    }
    continuation?.resume(returning: Answer(outcome: .success(value)))
    return .none
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    let (continuation, subscription): (Continuation?, (any Subscription)?) = lock.withLock {
      guard case .open = phase else { return (nil, nil) }
      let waiting = waiting.take()
      // An error is reported once.
      phase = .ended(waiting == nil ? completion : .finished)
      return (waiting, self.subscription.take())
    }
    continuation?.resume(returning: Self.answer(completion))
    _ = subscription
  }

  // MARK: The task's side

  /// Requests the next value and waits for it. Cancelling the task cancels the subscription.
  func next(isolation: isolated (any Actor)?) async -> Answer {
    await withTaskCancellationHandler {
      if let answer = take() { return answer }
      return await withCheckedContinuation(isolation: isolation) { continuation in
        if let answer = take(orWait: continuation) { continuation.resume(returning: answer) }
      }
    } onCancel: {
      cancel()
    }
  }

  func cancel() {
    let (continuation, subscription): (Continuation?, (any Subscription)?) = lock.withLock {
      phase = .cancelled
      return (waiting.take(), self.subscription.take())
    }
    subscription?.cancel()
    // Releasing values may run the program's code, so it happens without the lock.
    let dropped = lock.withLock { exchange(&values, with: Queue()) }
    continuation?.resume(returning: Self.answer(.finished))
    _ = dropped
  }

  /// Returns a value or an end that has arrived. Otherwise `continuation` waits for it, if there is one.
  private func take(orWait continuation: Continuation? = nil) -> Answer? {
    let (answer, wanted, subscription): (Answer?, Int, (any Subscription)?) = lock.withLock {
      if case .cancelled = phase { return (Self.answer(.finished), 0, nil) }
      if let value = values.popFirst() {
        return (Answer(outcome: .success(value)), topUp(), self.subscription)
      }
      if case .ended(let completion) = phase {
        phase = .ended(.finished)
        return (Self.answer(completion), 0, nil)
      }
      guard let continuation else { return (nil, 0, nil) }
      precondition(waiting == nil, "one task at a time may use the iterator of a topic's records")
      waiting = continuation
      return (nil, topUp(), self.subscription)
    }
    if wanted > 0 { subscription?.request(.max(wanted)) }
    return answer
  }

  /// Under the lock: returns how many values to request now, in halves of `ahead`, so that not every value costs a request.
  private func topUp() -> Int {
    let held = owed + values.count
    let isWaited = waiting != nil
    guard isWaited && held == 0 || held * 2 <= ahead else { return 0 }
    let wanted = max(ahead + (isWaited ? 1 : 0) - held, 0)
    owed += wanted
    return wanted
  }

  /// Cancels the subscription when the iterator is released.
  final class Lease {
    let waiter: TopicWaiter

    init(_ topic: RemoteTopic<Value>) {
      if case .keepFull(let count) = topic.plan.prefetch {
        waiter = TopicWaiter(ahead: count)
        // The waiter keeps the prefetched values, so the subscription keeps none.
        topic.prefetching(.byRequest).subscribe(waiter)
      } else {
        waiter = TopicWaiter(ahead: 0)
        topic.subscribe(waiter)
      }
    }

    deinit {
      waiter.cancel()
    }
  }

  private static func answer(_ completion: Subscribers.Completion<ClientError>) -> Answer {
    switch completion {
    case .finished: Answer(outcome: .success(nil))
    case .failure(let error): Answer(outcome: .failure(error))
    }
  }
}
