/// Delivers to one subscriber, one thing at a time and in order, what comes from upstream and is due when a scheduler says so.
///
/// Values wait in a queue. A function on the scheduler says that the next of them is due, and delivers it, unless someone is
/// delivering already, who then does it too. So the order holds even if the scheduler runs functions concurrently, the stack
/// does not grow when a subscriber feeds its own source, and no lock is held while downstream runs.
///
///     upstream ──put──► waiting ──due──► downstream
///
/// After the end it holds nothing, whatever functions the scheduler still holds.
final class TimedDelivery<Input, Failure, Downstream: Subscriber>: SubscriptionAwaiting
where Downstream.Input == Input, Downstream.Failure == Failure {
  enum Phase {
    case awaiting
    case open
    case completing  // upstream has ended; downstream will be told in its turn
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

  private let name: StaticString

  /// - Parameter name: The operator's name in descriptions.
  init(_ name: StaticString, downstream: Downstream) {
    self.name = name
    self.downstream = downstream
  }

  var description: String { name.description }

  var isOpen: Bool { lock.withLock { phase == .open } }

  var isAwaitingSubscription: Bool { lock.withLock { phase == .awaiting } }

  /// Takes the subscription, unless there was one or the stream has ended, in which case it is cancelled.
  ///
  /// Nothing is delivered before ``open(with:reschedule:)``, which must follow.
  func connect(_ subscription: any Subscription) -> Bool {
    let isAccepted = lock.withLock {
      guard phase == .awaiting else { return false }
      phase = .open
      upstream = subscription
      isDelivering = true
      return true
    }
    if !isAccepted {
      subscription.cancel()
    }
    return isAccepted
  }

  /// Hands downstream its subscription, in the caller's turn.
  ///
  /// - Parameter reschedule: Has the scheduler call `deliver(0)`. Called if something has become due meanwhile, which must be
  ///   delivered on the scheduler and not on the caller's thread.
  func open(with subscription: any Subscription, reschedule: () -> Void) {
    lockedDownstream?.receive(subscription: subscription)
    let isDue = lock.withLock {
      isDelivering = false
      return due > 0
    }
    if isDue { reschedule() }
  }

  private var lockedDownstream: Downstream? {
    var downstream: Downstream?
    lock.withLock { downstream = self.downstream }
    return downstream
  }

  /// Queues a value. Called with the lock held, before the completion is queued.
  func lockedPut(_ input: Input) {
    waiting.append(input)
  }

  /// Takes nothing more from upstream. Called with the lock held, while open.
  ///
  /// - Returns: Upstream's subscription, to be cancelled unless upstream has ended by itself.
  func lockedClose() -> (any Subscription)? {
    phase = .completing
    return upstream.take()
  }

  /// Queues the completion. Called with the lock held, while completing.
  func lockedPut(_ completion: Subscribers.Completion<Failure>) {
    self.completion = completion
  }

  /// Takes nothing more from upstream, which has ended, and queues its completion.
  ///
  /// - Parameter alsoTaking: Takes out what the operator itself must let go of. Called with the lock held, if it was open.
  /// - Returns: Whether it was open, so that the completion must be made due.
  func complete(_ completion: Subscribers.Completion<Failure>, alsoTaking: () -> Void = {}) -> Bool {
    var upstream: (any Subscription)?
    let isOpen = lock.withLock {
      guard phase == .open else { return false }
      upstream = lockedClose()
      lockedPut(completion)
      alsoTaking()
      return true
    }
    withExtendedLifetime(upstream) {}
    if !isOpen { ignoreIfEarly(.completionBeforeSubscription) }
    return isOpen
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
    if isOurs {
      deliverDue(onDemand)
    }
  }

  /// Delivers what is due, then leaves.
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
    var upstream: (any Subscription)?
    lock.withLock { upstream = self.upstream }
    upstream?.request(demand)
  }

  /// Lets go of everything and cancels upstream.
  ///
  /// - Parameter alsoTaking: Takes out what the operator itself must let go of. Called with the lock held, once.
  /// - Returns: Whether it was open.
  @discardableResult
  func cancel(alsoTaking: () -> Void = {}) -> Bool {
    var upstream: (any Subscription)?
    var downstream: Downstream?
    var waiting = RingBuffer<Input>()
    var completion: Subscribers.Completion<Failure>?
    let isFirst = lock.withLock {
      guard phase != .ended else { return false }
      phase = .ended
      swap(&upstream, &self.upstream)
      swap(&downstream, &self.downstream)
      swap(&waiting, &self.waiting)
      swap(&completion, &self.completion)
      alsoTaking()
      return true
    }
    upstream?.cancel()
    return isFirst
  }
}

/// The timer that an operator starts anew again and again, and how to tell its firings from those of earlier ones.
///
/// Its owner guards it with a lock, and schedules and cancels without.
struct RestartedTimer {
  private var generation: UInt64 = 0
  private var current: (any Cancellable)?

  /// Makes earlier timers void.
  ///
  /// - Returns: What to know the next one by.
  mutating func restart() -> UInt64 {
    generation &+= 1
    return generation
  }

  /// Keeps a timer that has been scheduled, in exchange for the earlier one, unless it has become void meanwhile.
  ///
  /// - Parameter timer: The timer; then what must be cancelled.
  mutating func keep(_ timer: inout (any Cancellable)?, as generation: UInt64) {
    if generation == self.generation {
      swap(&timer, &current)
    }
  }

  /// Whether a firing is not of an earlier timer.
  func isCurrent(_ generation: UInt64) -> Bool {
    generation == self.generation
  }

  /// Makes the timer void.
  ///
  /// - Returns: What must be cancelled.
  mutating func stop() -> (any Cancellable)? {
    generation &+= 1
    return current.take()
  }
}
