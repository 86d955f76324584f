public import Foundation
public import ReactiveCore

extension Timer {
  /// A publisher of the current date at regular intervals, once connected.
  ///
  ///     let clock = Timer.publish(every: 1, on: .main, in: .common).autoconnect().sink { print($0) }
  ///
  /// - Parameters:
  ///   - interval: Seconds between dates. The first comes an interval after connecting.
  ///   - tolerance: Seconds by which a date may be late; nil leaves it to the system.
  ///   - runLoop: Where the timer runs. Dates are delivered on its thread.
  ///   - mode: The run loop's mode in which the timer runs.
  ///   - options: Has no effect.
  public static func publish(
    every interval: TimeInterval, tolerance: TimeInterval? = nil, on runLoop: RunLoop, in mode: RunLoop.Mode,
    options: RunLoop.SchedulerOptions? = nil
  ) -> TimerPublisher {
    TimerPublisher(interval: interval, tolerance: tolerance, runLoop: runLoop, mode: mode, options: options)
  }

  /// Delivers the current date at regular intervals, once connected.
  ///
  /// All subscribers share one timer. A date goes to those that have asked for more than they got; the
  /// others miss it. Each has its own demand, unlike in Combine, and cancels for itself alone. Cancelling the connection stops
  /// the timer and detaches all subscribers without a completion; those that subscribe afterwards may be
  /// connected anew.
  public final class TimerPublisher: ConnectablePublisher {
    public typealias Output = Date
    public typealias Failure = Never

    /// Seconds between dates.
    public let interval: TimeInterval
    /// Seconds by which a date may be late; nil leaves it to the system.
    public let tolerance: TimeInterval?
    /// Where the timer runs.
    public let runLoop: RunLoop
    /// The run loop's mode in which the timer runs.
    public let mode: RunLoop.Mode
    /// Without effect.
    public let options: RunLoop.SchedulerOptions?

    private let subscriptions = TimerSubscriptions()
    private let lock = Lock()
    private var connection: TimerConnection?  // guarded by the lock

    /// A publisher of the current date at regular intervals.
    public init(
      interval: TimeInterval, tolerance: TimeInterval? = nil, runLoop: RunLoop, mode: RunLoop.Mode,
      options: RunLoop.SchedulerOptions? = nil
    ) {
      self.interval = interval
      self.tolerance = tolerance
      self.runLoop = runLoop
      self.mode = mode
      self.options = options
    }

    public func receive<S: Subscriber>(subscriber: S) where S.Input == Date, S.Failure == Never {
      let subscription = TimerSubscription(
        subscriptions: subscriptions, downstream: AnySubscriber(subscriber), interval: interval,
        tolerance: tolerance)
      subscriptions.add(subscription)
      subscriber.receive(subscription: subscription)
    }

    /// Starts the timer, unless it runs already.
    ///
    /// - Returns: An object that stops the timer. It runs on if this is released without being cancelled.
    public func connect() -> any Cancellable {
      let subscriptions = subscriptions
      // Foundation outside Apple's platforms fires a timer without a first date as soon as it is added.
      let candidate = Timer(
        fire: Date(timeIntervalSinceNow: interval), interval: interval, repeats: true
      ) { _ in subscriptions.send(Date()) }
      if let tolerance { candidate.tolerance = tolerance }
      var isNew = false
      let connection = lock.withLock {
        if let connection = self.connection, !connection.isCancelled { return connection }
        isNew = true
        let connection = TimerConnection(timer: candidate, subscriptions: subscriptions)
        self.connection = connection
        return connection
      }
      if isNew { runLoop.add(candidate, forMode: mode) }
      return connection
    }
  }
}

/// One run of the timer.
private final class TimerConnection: Cancellable {
  private let timer: Timer
  private let subscriptions: TimerSubscriptions
  private let lock = Lock()
  private var hasEnded = false  // guarded by the lock

  init(timer: Timer, subscriptions: TimerSubscriptions) {
    self.timer = timer
    self.subscriptions = subscriptions
  }

  var isCancelled: Bool { lock.withLock { hasEnded } }

  func cancel() {
    let isFirst = lock.withLock {
      defer { hasEnded = true }
      return !hasEnded
    }
    if isFirst {
      timer.invalidate()
      subscriptions.cancelAll()
    }
  }
}

/// The subscriptions that get the dates, in the order in which they came.
private final class TimerSubscriptions: @unchecked Sendable {
  // Sendable because the lock guards the list.

  private let lock = Lock()
  private var members: [TimerSubscription] = []  // guarded by the lock

  func add(_ member: TimerSubscription) {
    lock.withLock { members.append(member) }
  }

  func remove(_ member: TimerSubscription) {
    lock.withLock { members.removeAll { $0 === member } }
  }

  func send(_ date: Date) {
    for member in lock.withLock({ members }) {
      member.offer(date)
    }
  }

  func cancelAll() {
    let members = lock.withLock { exchange(&self.members, with: []) }
    for member in members { member.cancel() }
  }
}

/// One subscriber's part in a timer.
private final class TimerSubscription: Subscription, OperatorPart {
  private let interval: TimeInterval
  private let tolerance: TimeInterval?

  private let lock = Lock()
  // Guarded by the lock.
  private var subscriptions: TimerSubscriptions?
  private var downstream: AnySubscriber<Date, Never>?
  private var demand = Subscribers.Demand.none

  init(
    subscriptions: TimerSubscriptions, downstream: AnySubscriber<Date, Never>, interval: TimeInterval,
    tolerance: TimeInterval?
  ) {
    self.subscriptions = subscriptions
    self.downstream = downstream
    self.interval = interval
    self.tolerance = tolerance
  }

  /// Delivers a date if there is demand. Called on the run loop's thread.
  func offer(_ date: Date) {
    let downstream: AnySubscriber<Date, Never>? = lock.withLock {
      guard let downstream = self.downstream, demand > 0 else { return nil }
      demand -= 1
      return downstream
    }
    guard let downstream else { return }
    let more = downstream.receive(date)
    lock.withLock { demand += more }
  }

  func request(_ demand: Subscribers.Demand) {
    demand.assertNonZero()
    lock.withLock { self.demand += demand }
  }

  func cancel() {
    let (subscriptions, downstream) = lock.withLock { (self.subscriptions.take(), self.downstream.take()) }
    subscriptions?.remove(self)
    withExtendedLifetime(downstream) {}
  }

  var description: String { "Timer" }

  var customMirror: Mirror {
    let downstream = lock.withLock { self.downstream }
    return mirror(("downstream", downstream as Any), ("interval", interval), ("tolerance", tolerance as Any))
  }
}
