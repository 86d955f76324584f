public import Dispatch
import PortableCombine

/// How a `Publishers.DispatchTimer` ticks.
public struct DispatchTimerConfiguration: Sendable {
  /// Where ticks are delivered; nil for a queue of Dispatch's choice.
  public var queue: DispatchQueue?
  /// The time between ticks, and before the first.
  public var interval: DispatchTimeInterval
  /// How late a tick may be so that the system can save energy.
  public var leeway: DispatchTimeInterval
  /// How many ticks to deliver before finishing.
  public var times: Subscribers.Demand

  /// How a timer ticks.
  public init(
    queue: DispatchQueue? = nil, interval: DispatchTimeInterval,
    leeway: DispatchTimeInterval = .nanoseconds(0),
    times: Subscribers.Demand = .unlimited
  ) {
    self.queue = queue
    self.interval = interval
    self.leeway = leeway
    self.times = times
  }
}

extension Publishers {
  /// Delivers the time at regular intervals, a number of times, then finishes.
  ///
  /// Each subscriber has a timer of its own, which starts when the subscriber first asks. A tick without demand is
  /// skipped and not counted. Ticks of one subscription never overlap, on a concurrent queue either.
  public struct DispatchTimer: Publisher, Sendable {
    public typealias Output = DispatchTime
    public typealias Failure = Never

    /// How the timer ticks.
    public let configuration: DispatchTimerConfiguration

    /// A timer that ticks as configured.
    public init(configuration: DispatchTimerConfiguration) { self.configuration = configuration }

    public func receive<S: Subscriber>(subscriber: S) where S.Input == DispatchTime, S.Failure == Never {
      if configuration.times == .none {
        subscriber.receive(subscription: Subscriptions.empty)
        subscriber.receive(completion: .finished)
      } else {
        subscriber.receive(
          subscription: DispatchTimerSubscription(configuration, downstream: AnySubscriber(subscriber)))
      }
    }
  }

  /// A publisher of the time at regular intervals.
  ///
  ///     let countdown = Publishers.timer(queue: .main, interval: .seconds(1), times: .max(3))
  ///     let subscription = countdown.sink { print("tick", $0) }  // three times
  ///
  /// - Parameters:
  ///   - queue: Where ticks are delivered; nil for a queue of Dispatch's choice.
  ///   - interval: The time between ticks, and before the first.
  ///   - leeway: How late a tick may be so that the system can save energy.
  ///   - times: How many ticks to deliver before finishing.
  public static func timer(
    queue: DispatchQueue? = nil, interval: DispatchTimeInterval,
    leeway: DispatchTimeInterval = .nanoseconds(0),
    times: Subscribers.Demand = .unlimited
  ) -> DispatchTimer {
    DispatchTimer(
      configuration: DispatchTimerConfiguration(
        queue: queue, interval: interval, leeway: leeway, times: times))
  }
}

/// One timer. It runs until it is cancelled or has ticked often enough, whether or not the subscriber keeps
/// it.
private final class DispatchTimerSubscription: Subscription, CustomStringConvertible, CustomReflectable,
  CustomPlaygroundDisplayConvertible, @unchecked Sendable
{
  // Sendable because the lock guards all that changes, and only the timer's handler delivers.

  private typealias Downstream = AnySubscriber<DispatchTime, Never>

  private let configuration: DispatchTimerConfiguration

  private let lock = Lock()
  // Guarded by the lock.
  private var downstream: AnySubscriber<DispatchTime, Never>?
  private var source: (any DispatchSourceTimer)?
  private var demand = Subscribers.Demand.none
  private var times: Subscribers.Demand

  init(_ configuration: DispatchTimerConfiguration, downstream: AnySubscriber<DispatchTime, Never>) {
    self.configuration = configuration
    self.downstream = downstream
    times = configuration.times
  }

  func request(_ demand: Subscribers.Demand) {
    demand.assertNonZero()
    let isFirst = lock.withLock {
      defer { self.demand += demand }
      return source == nil && self.demand == .none && downstream != nil
    }
    if isFirst { start() }
  }

  private func start() {
    let source = DispatchSource.makeTimerSource(queue: configuration.queue)
    source.schedule(
      deadline: .now() + configuration.interval, repeating: configuration.interval,
      leeway: configuration.leeway)
    source.setEventHandler { [self] in tick() }
    source.activate()
    let isOpen = lock.withLock {
      if downstream != nil { self.source = source }
      return downstream != nil
    }
    if !isOpen { source.cancel() }
  }

  private func tick() {
    var isLast = false
    let downstream: Downstream? = lock.withLock {
      guard demand > 0, times > 0 else { return nil }
      demand -= 1
      times -= 1
      isLast = times == .none
      return self.downstream
    }
    guard let downstream else { return }
    let more = downstream.receive(.now())
    if !isLast {
      lock.withLock { demand += more }
    } else if let (downstream, source) = end() {
      source?.cancel()
      downstream.receive(completion: .finished)
    }
  }

  func cancel() { end()?.source?.cancel() }

  private func end() -> (downstream: Downstream, source: (any DispatchSourceTimer)?)? {
    let (downstream, source) = lock.withLock { (self.downstream.take(), self.source.take()) }
    return downstream.map { ($0, source) }
  }

  var description: String { "DispatchTimer" }

  var customMirror: Mirror {
    let (demand, times) = lock.withLock { (self.demand, self.times) }
    return Mirror(
      self,
      children: [("configuration", configuration as Any), ("demand", demand), ("times", times)])
  }

  var playgroundDescription: Any { description }
}
