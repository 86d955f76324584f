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

    /// Where the values come from.
    public let upstream: Upstream
    /// When arrays are delivered.
    public let strategy: Publishers.TimeGroupingStrategy<Context>
    /// How downstream is called.
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
  Subscriber, Subscription, OperatorPart
where Downstream.Input == [Input], Downstream.Failure == Failure {
  private let scheduler: Context
  private let interval: Context.SchedulerTimeType.Stride
  private let count: Int?  // how many values make an array full
  private let options: Context.SchedulerOptions?
  private let delivery: TimedDelivery<[Input], Failure, Downstream>

  // Guarded by the delivery's lock.
  private var buffer = RingBuffer<Input>()
  private var isFinishing = false  // upstream has finished, and what is left waits for demand
  private var timer = RestartedTimer()

  init(
    strategy: Publishers.TimeGroupingStrategy<Context>, options: Context.SchedulerOptions?,
    downstream: Downstream
  ) {
    switch strategy {
    case .byTime(let scheduler, let interval):
      (self.scheduler, self.interval, count) = (scheduler, interval, nil)
    case .byTimeOrCount(let scheduler, let interval, let count):
      precondition(count > 0, "collect needs a count of at least one")
      (self.scheduler, self.interval, self.count) = (scheduler, interval, count)
    }
    self.options = options
    delivery = TimedDelivery("CollectByTime", downstream: downstream)
  }

  deinit {
    timer.stop()?.cancel()
  }

  func receive(subscription: any Subscription) {
    guard delivery.connect(subscription) else { return }
    startTimer()
    delivery.open(with: self) {
      scheduler.schedule(options: options) { self.delivery.deliver(0, onDemand: self.addDemand) }
    }
  }

  private func startTimer() {
    let generation = delivery.lock.withLock { self.timer.restart() }
    var timer: (any Cancellable)? = scheduler.schedule(
      after: scheduler.now.advanced(by: interval), interval: interval, tolerance: scheduler.minimumTolerance,
      options: options
    ) { [weak self] in
      // It goes on for ever, but not if upstream and downstream have let go without a word.
      self?.tick()
    }
    delivery.lock.withLock { self.timer.keep(&timer, as: generation) }
    timer?.cancel()
  }

  private func tick() {
    let hasSome = delivery.lock.withLock {
      guard delivery.phase == .open, delivery.demand > .none, !buffer.isEmpty else { return false }
      lockedPutArray()
      return true
    }
    if hasSome { delivery.deliver(onDemand: addDemand) }
  }

  /// Puts an array in the queue, no longer than may be. Called with the lock held, when one is asked for.
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
    guard puts > 0 else { return }
    scheduler.schedule(options: options) {
      self.delivery.deliver(puts, onDemand: self.addDemand)
    }
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
    var timer: (any Cancellable)?
    var upstream: (any Subscription)?
    var dropped = RingBuffer<Input>()
    let puts: Int? = delivery.lock.withLock {
      guard delivery.phase == .open else { return nil }
      timer = self.timer.stop()
      upstream = delivery.lockedClose()
      if case .failure = completion {
        swap(&dropped, &buffer)
        delivery.lockedPut(completion)
        return 1
      }
      isFinishing = true
      return lockedSettle()
    }
    withExtendedLifetime(upstream) {}
    timer?.cancel()
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
    var timer: (any Cancellable)?
    var dropped = RingBuffer<Input>()
    delivery.cancel {
      isFinishing = false
      timer = self.timer.stop()
      swap(&dropped, &buffer)
    }
    timer?.cancel()
  }

  var description: String { delivery.description }
}

extension Publisher {
  /// Delivers the values in arrays, at regular intervals.
  ///
  /// The arrays and the completion are delivered on the strategy's scheduler. An interval in which nothing came delivers nothing.
  /// Values that come while downstream has asked for nothing are kept. When upstream finishes, what is left is delivered,
  /// once asked for, and then the finish; when it fails, what is left is forgotten. Unlike Combine, nothing is delivered that was
  /// not asked for.
  ///
  /// With `byTime`, upstream is asked for one value with each request, and for another with each value. With `byTimeOrCount`, it
  /// is asked for as many values as the arrays asked for hold, and arrays that are full don't wait for the end of the interval,
  /// which they leave as it is.
  ///
  /// - Parameters:
  ///   - strategy: When arrays are delivered. A count must be at least one.
  ///   - options: How downstream is called.
  public func collect<S: Scheduler>(
    _ strategy: Publishers.TimeGroupingStrategy<S>, options: S.SchedulerOptions? = nil
  ) -> Publishers.CollectByTime<Self, S> {
    Publishers.CollectByTime(upstream: self, strategy: strategy, options: options)
  }
}
