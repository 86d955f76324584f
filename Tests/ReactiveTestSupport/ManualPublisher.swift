import ReactiveCore

/// A source that does what the test says, whether or not it is allowed to, and records what it is asked.
///
/// It does not check demand and does not stop after completion or cancellation: that is how operators are tested for it.
package final class ManualPublisher<Output, Failure: Error>: Publisher {
  package let history: History
  package var onRequest: (Subscribers.Demand) -> Void = { _ in }
  package var onCancel: () -> Void = {}
  package var onDeinit: () -> Void = {}

  /// Whether to send a subscription as soon as a subscriber is attached.
  package var subscribesAtOnce = true
  package private(set) var subscriber: AnySubscriber<Output, Failure>?

  package init(history: History = History()) {
    self.history = history
  }

  deinit {
    onDeinit()
  }

  package func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    self.subscriber = AnySubscriber(subscriber)
    if subscribesAtOnce {
      sendSubscription()
    }
  }

  package func sendSubscription() {
    subscriber?.receive(
      subscription: ManualSubscription(
        onRequest: { [history, weak self] in
          history.append(.requested($0))
          self?.onRequest($0)
        },
        onCancel: { [history, weak self] in
          history.append(.cancelled)
          self?.onCancel()
        }))
  }

  @discardableResult
  package func send(_ value: Output) -> Subscribers.Demand {
    subscriber?.receive(value) ?? .none
  }

  package func send(completion: Subscribers.Completion<Failure>) {
    subscriber?.receive(completion: completion)
  }

  /// Lets go of the subscriber, as a source does after its end.
  package func forget() {
    subscriber = nil
  }
}

/// A subscription made of functions.
package final class ManualSubscription: Subscription, CustomStringConvertible {
  private let onRequest: (Subscribers.Demand) -> Void
  private let onCancel: () -> Void

  package init(
    onRequest: @escaping (Subscribers.Demand) -> Void = { _ in }, onCancel: @escaping () -> Void = {}
  ) {
    self.onRequest = onRequest
    self.onCancel = onCancel
  }

  package func request(_ demand: Subscribers.Demand) {
    onRequest(demand)
  }

  package func cancel() {
    onCancel()
  }

  package var description: String { "Manual" }
}
