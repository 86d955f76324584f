/// Runs a function at once, and delivers its one result to every subscriber, now or later.
public final class Future<Output, Failure: Error>: Publisher {
  /// Settles a future. Only the first call counts. May be called from any thread, at any time.
  public typealias Promise = @Sendable (Result<Output, Failure>) -> Void

  private let lock = Lock()
  private var result: Result<Output, Failure>?  // guarded by the lock
  private var waiting: [Int: FutureConduit<Output, Failure>] = [:]  // by ticket; guarded by the lock
  private var lastTicket = 0  // guarded by the lock

  /// A future that is settled by what the function does with the promise it gets.
  ///
  /// - Parameter attemptToFulfill: Called before this returns.
  public init(_ attemptToFulfill: @escaping (@escaping Promise) -> Void) {
    // The future guards its state by its lock; the promise is all that crosses threads.
    nonisolated(unsafe) let future = self
    attemptToFulfill { unsafe future.settle($0) }
  }

  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    let conduit = FutureConduit(future: self, downstream: AnySubscriber(subscriber))
    let result: Result<Output, Failure>? = lock.withLock {
      if self.result == nil {
        lastTicket += 1
        conduit.ticket = lastTicket
        waiting[lastTicket] = conduit
      }
      return self.result
    }
    subscriber.receive(subscription: conduit)
    conduit.open(result)
  }

  private func settle(_ result: Result<Output, Failure>) {
    var waiting: [Int: FutureConduit<Output, Failure>] = [:]
    lock.withLock {
      guard self.result == nil else { return }
      self.result = result
      swap(&waiting, &self.waiting)
    }
    for (_, conduit) in waiting.sorted(by: { $0.key < $1.key }) {
      conduit.settle(result)
    }
  }

  fileprivate func remove(_ conduit: FutureConduit<Output, Failure>) {
    let removed = lock.withLock { waiting.removeValue(forKey: conduit.ticket) }
    withExtendedLifetime(removed) {}

  }
}

// The lock guards the state. Values cross threads, hence the condition.
extension Future: @unchecked Sendable where Output: Sendable {}

/// One subscription to a future: waits for the result, the subscriber's demand, and the end of the subscriber's attachment.
private final class FutureConduit<Output, Failure: Error>: Subscription, OperatorPart {
  /// The future's number for this conduit; set before another thread can read it.
  fileprivate var ticket = 0

  private let lock = Lock()
  // Guarded by the lock.
  private var future: Future<Output, Failure>?
  private var downstream: AnySubscriber<Output, Failure>?
  private var result: Result<Output, Failure>?
  private var hasAnyDemand = false
  private var isOpen = false

  init(future: Future<Output, Failure>, downstream: AnySubscriber<Output, Failure>) {
    self.future = future
    self.downstream = downstream
  }

  func open(_ result: Result<Output, Failure>?) {
    deliver(after: {
      isOpen = true
      if let result { self.result = result }
    })
  }

  func settle(_ result: Result<Output, Failure>) {
    deliver(after: { self.result = result })
  }

  func request(_ demand: Subscribers.Demand) {
    demand.assertNonZero()
    deliver(after: { hasAnyDemand = true })
  }

  func cancel() { take()?.future?.remove(self) }

  /// Changes the state, and delivers if that was all that was missing. An error needs no demand.
  private func deliver(after change: () -> Void) {
    var ready: Result<Output, Failure>?
    var downstream: AnySubscriber<Output, Failure>?
    var future: Future<Output, Failure>?
    lock.withLock {
      change()
      guard let result else { return }
      if case .success = result {
        guard hasAnyDemand else { return }
      }
      guard isOpen || hasAnyDemand else { return }
      ready = result
      swap(&downstream, &self.downstream)
      swap(&future, &self.future)
    }
    guard let downstream, let ready else { return }
    switch ready {
    case .success(let value):
      _ = downstream.receive(value)
      downstream.receive(completion: .finished)
    case .failure(let error): downstream.receive(completion: .failure(error))
    }
  }

  private func take() -> (future: Future<Output, Failure>?, downstream: AnySubscriber<Output, Failure>?)? {
    lock.withLock { (future.take(), downstream.take()) }
  }

  var description: String { "Future" }

  var customMirror: Mirror {
    let (future, downstream, hasAnyDemand) = lock.withLock {
      (self.future, self.downstream, self.hasAnyDemand)
    }
    return mirror(
      ("parent", future as Any), ("downstream", downstream as Any), ("hasAnyDemand", hasAnyDemand),
      ("subject", future as Any))
  }
}

extension Future where Failure == Never {
  /// The result, once there is one.
  ///
  /// The future has its result sooner or later whatever becomes of the task, so cancelling the task does not
  /// end the wait.
  public var value: Output {
    get async {
      let bridge = AsyncBridge<Output, Never>()
      subscribe(bridge)
      guard let value = await bridge.nextIgnoringCancellation().event.get() else {
        preconditionFailure("A future that cannot fail has finished without a value")
      }
      return value
    }
  }
}

extension Future {
  /// The result, once there is one.
  ///
  /// Cancelling the task cancels the subscription and ends the wait; the future still runs for its other subscribers.
  ///
  /// - Throws: The error of the future, or `CancellationError` when the task is cancelled.
  public var value: Output {
    get async throws {
      let bridge = AsyncBridge<Output, Failure>()
      subscribe(bridge)
      guard let value = try await bridge.next().event.get() else { throw CancellationError() }
      return value
    }
  }
}
