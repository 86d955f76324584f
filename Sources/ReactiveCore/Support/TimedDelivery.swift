/// Delivers values and the completion of upstream to one subscriber, in order, when a scheduler runs their functions.
///
/// Values wait in a queue. A function on the scheduler marks the next of them as due, and delivers it, unless another function is
/// delivering, which then delivers this one as well. So the order holds even if the scheduler runs functions concurrently, the
/// stack does not grow when a subscriber sends to its own source, and no lock is held while downstream runs.
///
///     upstream ──put──► waiting ──due──► downstream
///
/// After the end it holds nothing, whatever functions the scheduler still holds.
final class TimedDelivery<Context: Scheduler, Input, Failure, Downstream: Subscriber>: SubscriptionAwaiting
where Downstream.Input == Input, Downstream.Failure == Failure {
  enum Phase {
    case awaiting
    case open
    case completing  // upstream has ended; the completion waits for its turn
    case ended
  }

  let lock = Lock()  // guards the operator's own fields as well

  // Guarded by the lock.
  private(set) var phase = Phase.awaiting
  private(set) var upstream: (any Subscription)?
  private(set) var downstream: Downstream?
  var demand = Subscribers.Demand.none  // for operators that count it
  private var waiting = RingBuffer<Input>()
  private var completion: Subscribers.Completion<Failure>?
  private var due = 0
  private var isDelivering = false
  private var timer = RestartedTimer()

  let scheduler: Context
  private let options: Context.SchedulerOptions?
  private let name: StaticString

  /// - Parameter name: The operator's name in descriptions.
  init(
    _ name: StaticString, scheduler: Context, options: Context.SchedulerOptions? = nil, downstream: Downstream
  ) {
    self.name = name
    self.scheduler = scheduler
    self.options = options
    self.downstream = downstream
  }

  deinit { timer.stop()?.cancel() }

  var description: String { name.description }

  var isOpen: Bool { lock.withLock { phase == .open } }

  var isAwaitingSubscription: Bool { lock.withLock { phase == .awaiting } }

  /// Takes the subscription, unless there was one or the stream has ended, in which case it is cancelled.
  ///
  /// Nothing is delivered before ``open(with:onDemand:)``, which must follow.
  func connect(_ subscription: any Subscription) -> Bool {
    let isAccepted = lock.withLock {
      guard phase == .awaiting else { return false }
      phase = .open
      upstream = subscription
      isDelivering = true
      return true
    }
    if !isAccepted { subscription.cancel() }
    return isAccepted
  }

  /// Hands downstream its subscription, in the caller's turn.
  ///
  /// Calls that became due meanwhile are delivered on the scheduler, not on the caller's thread.
  ///
  /// - Parameter onDemand: What to do with the demand that downstream returns. Called without the lock.
  func open(with subscription: any Subscription, onDemand: @escaping (Subscribers.Demand) -> Void) {
    lockedDownstream?.receive(subscription: subscription)
    let isDue = lock.withLock {
      isDelivering = false
      return due > 0
    }
    if isDue { schedule(0, onDemand: onDemand) }
  }

  private var lockedDownstream: Downstream? {
    lock.withLock { self.downstream }
  }

  /// Queues a value. Called with the lock held, before the completion is queued.
  func lockedPut(_ input: Input) { waiting.append(input) }

  /// Takes nothing more from upstream, and makes the timer void. Called with the lock held, while open.
  ///
  /// - Returns: Upstream's subscription, to be cancelled unless upstream has ended by itself, and the timer, to be cancelled.
  func lockedClose() -> (upstream: (any Subscription)?, timer: (any Cancellable)?) {
    phase = .completing
    return (upstream.take(), timer.stop())
  }

  /// Queues the completion. Called with the lock held, while completing.
  func lockedPut(_ completion: Subscribers.Completion<Failure>) { self.completion = completion }

  /// Takes nothing more from upstream, which has ended, and queues its completion.
  ///
  /// - Parameter alsoTaking: Takes out what the operator itself must release. Called with the lock held, if it was open.
  /// - Returns: Whether it was open, so that the completion must be made due.
  func complete(_ completion: Subscribers.Completion<Failure>, alsoTaking: () -> Void = {}) -> Bool {
    var closed: (upstream: (any Subscription)?, timer: (any Cancellable)?)
    let isOpen = lock.withLock {
      guard phase == .open else { return false }
      closed = lockedClose()
      lockedPut(completion)
      alsoTaking()
      return true
    }
    withExtendedLifetime(closed.upstream) {}
    closed.timer?.cancel()
    if !isOpen { ignoreIfEarly(.completionBeforeSubscription) }
    return isOpen
  }

  /// Has the scheduler call ``deliver(_:onDemand:)``.
  func schedule(_ count: Int = 1, onDemand: @escaping (Subscribers.Demand) -> Void) {
    scheduler.schedule(options: options) {
      self.deliver(count, onDemand: onDemand)
    }
  }

  /// Makes the next things in the queue due and delivers them.
  ///
  /// - Parameters:
  ///   - count: How many; all if nil.
  ///   - onDemand: What to do with the demand that downstream returns. Called without the lock.
  func deliver(_ count: Int? = 1, onDemand: (Subscribers.Demand) -> Void) {
    let isOurs = lock.withLock {
      let all = waiting.count + (completion == nil ? 0 : 1)
      due = count.map { Swift.min(due + $0, all) } ?? all
      defer { isDelivering = true }
      return !isDelivering
    }
    if isOurs { deliverDue(onDemand) }
  }

  /// Delivers what is due, then stops delivering.
  private func deliverDue(_ onDemand: (Subscribers.Demand) -> Void) {
    while true {
      var value: Input?
      var completion: Subscribers.Completion<Failure>?
      var downstream: Downstream?
      lock.withLock {
        guard due > 0, phase == .open || phase == .completing else {
          isDelivering = false
          return
        }
        due -= 1
        value = waiting.popFirst()
        if value != nil {
          downstream = self.downstream
        } else {
          phase = .ended
          swap(&completion, &self.completion)
          swap(&downstream, &self.downstream)
        }
      }
      guard let downstream else { return }
      if let value {
        let more = downstream.receive(value)
        if more != .none { onDemand(more) }
      } else if let completion {
        downstream.receive(completion: completion)
      }
    }
  }

  /// Passes a request on, unless upstream has ended.
  func requestUpstream(_ demand: Subscribers.Demand) {
    lock.withLock { upstream }?.request(demand)
  }

  /// Releases everything and cancels upstream.
  ///
  /// - Parameter alsoTaking: Takes out what the operator itself must release. Called with the lock held, once.
  /// - Returns: Whether it was open.
  @discardableResult
  func cancel(alsoTaking: () -> Void = {}) -> Bool {
    var upstream: (any Subscription)?
    var downstream: Downstream?
    var waiting = RingBuffer<Input>()
    var completion: Subscribers.Completion<Failure>?
    var timer: (any Cancellable)?
    let isFirst = lock.withLock {
      guard phase != .ended else { return false }
      phase = .ended
      timer = self.timer.stop()
      swap(&upstream, &self.upstream)
      swap(&downstream, &self.downstream)
      swap(&waiting, &self.waiting)
      swap(&completion, &self.completion)
      alsoTaking()
      return true
    }
    timer?.cancel()
    upstream?.cancel()
    return isFirst
  }

  // The timer of the operators that have one.

  /// Makes earlier timers void. Called with the lock held; ``startTimer(_:after:_:)`` must follow.
  ///
  /// - Returns: The generation of the next one.
  func lockedRestartTimer() -> UInt64 { timer.restart() }

  /// Starts a timer, which fires after an interval and again and again, unless it has become void.
  func startTimer(
    _ generation: UInt64, after interval: Context.SchedulerTimeType.Stride, _ fire: @escaping () -> Void
  ) {
    var timer: (any Cancellable)? = scheduler.schedule(
      after: scheduler.now.advanced(by: interval), interval: interval, tolerance: scheduler.minimumTolerance,
      options: options, fire)
    // The timer may have fired already, or the stream may have ended.
    lock.withLock { self.timer.keep(&timer, as: generation) }
    timer?.cancel()
  }

  /// Makes the timer void, if a firing is its own and the stream is open. Called with the lock held.
  ///
  /// - Returns: Whether it is, and what must be cancelled.
  func lockedStopTimer(_ generation: UInt64) -> (isOurs: Bool, timer: (any Cancellable)?) {
    guard timer.isCurrent(generation), phase == .open else { return (false, nil) }
    return (true, timer.stop())
  }
}

/// The subscriber of an operator that delivers by a scheduler's time; also the subscription that downstream gets.
protocol TimedSubscriber: Subscriber, Subscription, OperatorPart {
  associatedtype Context: Scheduler
  associatedtype Output
  associatedtype Downstream: Subscriber where Downstream.Input == Output, Downstream.Failure == Failure

  var delivery: TimedDelivery<Context, Output, Failure, Downstream> { get }
}

extension TimedSubscriber {
  func cancel() { delivery.cancel() }

  var description: String { delivery.description }
}

/// The timer that an operator restarts, and the generation that distinguishes its firings from those of earlier ones.
///
/// Its owner guards it with a lock, and schedules and cancels without.
private struct RestartedTimer {
  private var generation: UInt64 = 0
  private var current: (any Cancellable)?

  /// Makes earlier timers void.
  ///
  /// - Returns: The generation of the next one.
  mutating func restart() -> UInt64 {
    generation &+= 1
    return generation
  }

  /// Keeps a timer that has been scheduled, in exchange for the earlier one, unless it has become void meanwhile.
  ///
  /// - Parameter timer: The timer; then what must be cancelled.
  mutating func keep(_ timer: inout (any Cancellable)?, as generation: UInt64) {
    if generation == self.generation { swap(&timer, &current) }
  }

  /// Whether a firing is not of an earlier timer.
  func isCurrent(_ generation: UInt64) -> Bool { generation == self.generation }

  /// Makes the timer void.
  ///
  /// - Returns: What must be cancelled.
  mutating func stop() -> (any Cancellable)? {
    generation &+= 1
    return current.take()
  }
}
