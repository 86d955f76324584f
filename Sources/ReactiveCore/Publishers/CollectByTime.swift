extension Publishers {
  /// When collected values are delivered.
  public enum TimeGroupingStrategy<Context: Scheduler> {
    /// At regular intervals.
    case byTime(Context, Context.SchedulerTimeType.Stride)
    /// At regular intervals, and whenever there are so many.
    case byTimeOrCount(Context, Context.SchedulerTimeType.Stride, Int)
  }

  /// Delivers the values of a publisher in arrays, at regular intervals.
  public struct CollectByTime<Upstream: Publisher, Context: Scheduler>: Publisher {
    public typealias Output = [Upstream.Output]
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// When arrays are delivered.
    public let strategy: Publishers.TimeGroupingStrategy<Context>
    /// The scheduler's options.
    public let options: Context.SchedulerOptions?

    /// Collects the values of a publisher in arrays.
    public init(
      upstream: Upstream, strategy: Publishers.TimeGroupingStrategy<Context>,
      options: Context.SchedulerOptions?
    ) {
      self.upstream = upstream
      self.strategy = strategy
      self.options = options
    }

    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.subscribe(
        CollectByTimeSubscriber<Context, Upstream.Output, Failure, S>(
          strategy: strategy, options: options, downstream: subscriber))
    }
  }
}

extension Publishers.TimeGroupingStrategy: Sendable
where Context: Sendable, Context.SchedulerTimeType.Stride: Sendable {}

extension Publishers.CollectByTime: Sendable
where
  Upstream: Sendable, Context: Sendable, Context.SchedulerTimeType.Stride: Sendable,
  Context.SchedulerOptions: Sendable
{}

private final class CollectByTimeSubscriber<Context: Scheduler, Input, Failure, Downstream: Subscriber>:
  TimedSubscriber
where Downstream.Input == [Input], Downstream.Failure == Failure {
  private let interval: Context.SchedulerTimeType.Stride
  private let count: Int?  // how many values make an array full
  let delivery: TimedDelivery<Context, [Input], Failure, Downstream>

  // Guarded by the delivery's lock.
  private var buffer = RingBuffer<Input>()
  private var isFinishing = false  // upstream has finished, and what is left waits for demand

  init(
    strategy: Publishers.TimeGroupingStrategy<Context>, options: Context.SchedulerOptions?,
    downstream: Downstream
  ) {
    let scheduler: Context
    switch strategy {
    case .byTime(let context, let interval): (scheduler, self.interval, count) = (context, interval, nil)
    case .byTimeOrCount(let context, let interval, let count):
      precondition(count > 0, "collect needs a count of at least one")
      (scheduler, self.interval, self.count) = (context, interval, count)
    }
    delivery = TimedDelivery("CollectByTime", scheduler: scheduler, options: options, downstream: downstream)
  }

  func receive(subscription: any Subscription) {
    guard delivery.connect(subscription) else { return }
    startTimer()
    delivery.open(with: self, onDemand: addDemand)
  }

  private func startTimer() {
    let generation = delivery.lock.withLock { delivery.lockedRestartTimer() }
    // The timer fires until it is cancelled. It doesn't keep this object, which upstream and downstream may release without a call.
    delivery.startTimer(generation, after: interval) { [weak self] in self?.tick() }
  }

  private func tick() {
    let hasSome = delivery.lock.withLock {
      guard delivery.phase == .open, delivery.demand > .none, !buffer.isEmpty else { return false }
      lockedPutArray()
      return true
    }
    if hasSome { delivery.deliver(onDemand: addDemand) }
  }

  /// Puts an array in the queue, no longer than may be. Called with the lock held, when there is demand for an array.
  private func lockedPutArray() {
    delivery.demand -= 1
    let length = Swift.min(buffer.count, count ?? .max)
    var array: [Input] = []
    array.reserveCapacity(length)
    for _ in 0..<length {
      if let value = buffer.popFirst() { array.append(value) }
    }
    delivery.lockedPut(array)
  }

  /// Puts the arrays in the queue that are full and asked for, and if upstream has finished also the last and the completion.
  /// Called with the lock held.
  ///
  /// - Returns: How many things were put.
  private func lockedSettle() -> Int {
    guard delivery.phase == .open || isFinishing else { return 0 }
    var puts = 0
    while delivery.demand > .none, !buffer.isEmpty, isFinishing || buffer.count >= (count ?? .max) {
      lockedPutArray()
      puts += 1
    }
    if isFinishing, buffer.isEmpty {
      isFinishing = false
      delivery.lockedPut(.finished)
      puts += 1
    }
    return puts
  }

  private func schedule(_ puts: Int) {
    if puts > 0 { delivery.schedule(puts, onDemand: addDemand) }
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    let puts: Int? = delivery.lock.withLock {
      guard delivery.phase == .open else { return nil }
      buffer.append(input)
      return lockedSettle()
    }
    guard let puts else {
      delivery.ignoreIfEarly(.valueBeforeSubscription)
      return .none
    }
    schedule(puts)
    return count == nil ? .max(1) : .none
  }

  func receive(completion: Subscribers.Completion<Failure>) {
    var closed: (upstream: (any Subscription)?, timer: (any Cancellable)?)
    var dropped = RingBuffer<Input>()
    let puts: Int? = delivery.lock.withLock {
      guard delivery.phase == .open else { return nil }
      closed = delivery.lockedClose()
      if case .failure = completion {
        swap(&dropped, &buffer)
        delivery.lockedPut(completion)
        return 1
      }
      isFinishing = true
      return lockedSettle()
    }
    withExtendedLifetime(closed.upstream) {}
    closed.timer?.cancel()
    if let puts {
      schedule(puts)
    } else {
      delivery.ignoreIfEarly(.completionBeforeSubscription)
    }
  }

  func request(_ demand: Subscribers.Demand) {
    addDemand(demand)
    // Each value asks for the next.
    if count == nil { delivery.requestUpstream(.max(1)) }
  }

  /// Adds the demand of downstream; asks upstream for as many values as the arrays hold, if that is known.
  private func addDemand(_ demand: Subscribers.Demand) {
    let puts = delivery.lock.withLock {
      delivery.demand += demand
      return lockedSettle()
    }
    schedule(puts)
    if let count { delivery.requestUpstream(demand * count) }
  }

  func cancel() {
    var dropped = RingBuffer<Input>()
    delivery.cancel {
      isFinishing = false
      swap(&dropped, &buffer)
    }
  }
}

extension Publisher {
  /// Delivers the values in arrays, at regular intervals.
  ///
  /// The arrays and the completion are delivered on the strategy's scheduler. An interval in which nothing came delivers nothing.
  /// Values that come while downstream has asked for nothing are kept. When upstream finishes, what is left is delivered,
  /// once asked for, and then the finish; when it fails, what is left is dropped. Unlike Combine, nothing is delivered that was
  /// not asked for.
  ///
  /// With `byTime`, it requests one value from upstream with each request, and another with each value. With `byTimeOrCount`, it
  /// requests as many values as fit into the requested arrays. Full arrays don't wait for the end of the interval, and don't
  /// change it.
  ///
  /// - Parameters:
  ///   - strategy: When arrays are delivered. A count must be at least one.
  ///   - options: The scheduler's options.
  public func collect<S: Scheduler>(
    _ strategy: Publishers.TimeGroupingStrategy<S>, options: S.SchedulerOptions? = nil
  ) -> Publishers.CollectByTime<Self, S> {
    Publishers.CollectByTime(upstream: self, strategy: strategy, options: options)
  }
}
