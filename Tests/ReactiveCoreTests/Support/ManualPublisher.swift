import ReactiveCore

/// A source that does what the test says, whether or not it is allowed to, and records what it is asked.
///
/// It does not check demand and does not stop after completion or cancellation: that is how operators are tested for it.
final class ManualPublisher<Output, Failure: Error>: Publisher {
  let history: History
  var onRequest: (Subscribers.Demand) -> Void = { _ in }
  var onCancel: () -> Void = {}
  var onDeinit: () -> Void = {}

  /// Whether to send a subscription as soon as someone subscribes.
  var subscribesAtOnce = true
  private(set) var subscriber: AnySubscriber<Output, Failure>?

  init(history: History = History()) {
    self.history = history
  }

  deinit {
    onDeinit()
  }

  func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    self.subscriber = AnySubscriber(subscriber)
    if subscribesAtOnce {
      sendSubscription()
    }
  }

  func sendSubscription() {
    subscriber?.receive(
      subscription: ManualSubscription(
        onRequest: { [history, weak self] in
          history.events.append(.requested($0))
          self?.onRequest($0)
        },
        onCancel: { [history, weak self] in
          history.events.append(.cancelled)
          self?.onCancel()
        }))
  }

  @discardableResult
  func send(_ value: Output) -> Subscribers.Demand {
    subscriber?.receive(value) ?? .none
  }

  func send(completion: Subscribers.Completion<Failure>) {
    subscriber?.receive(completion: completion)
  }

  /// Lets go of the subscriber, as a source does after its end.
  func forget() {
    subscriber = nil
  }
}

/// A subscription made of functions.
final class ManualSubscription: Subscription, CustomStringConvertible {
  private let onRequest: (Subscribers.Demand) -> Void
  private let onCancel: () -> Void

  init(
    onRequest: @escaping (Subscribers.Demand) -> Void = { _ in }, onCancel: @escaping () -> Void = {}
  ) {
    self.onRequest = onRequest
    self.onCancel = onCancel
  }

  func request(_ demand: Subscribers.Demand) {
    onRequest(demand)
  }

  func cancel() {
    onCancel()
  }

  var description: String { "Manual" }
}
