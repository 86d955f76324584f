import ReactiveCore

/// Records all calls; requests as configured.
package final class TrackingSubscriber<Input: Hashable, Failure: Error>: Subscriber, CustomStringConvertible {
  package let history: History
  package var subscription: (any Subscription)?

  /// The demand to request on subscription; nil for none.
  package var initialDemand: Subscribers.Demand?
  /// The demand to return for each value.
  package var demandPerValue: Subscribers.Demand
  package var onSubscription: (any Subscription) -> Void = { _ in }
  package var onValue: (Input) -> Void = { _ in }
  package var onCompletion: () -> Void = {}
  package var onDeinit: () -> Void = {}

  package init(
    _ initialDemand: Subscribers.Demand? = nil, perValue: Subscribers.Demand = .none,
    history: History = History()
  ) {
    self.initialDemand = initialDemand
    demandPerValue = perValue
    self.history = history
  }

  deinit {
    onDeinit()
  }

  package func receive(subscription: any Subscription) {
    history.append(.subscription(String(describing: subscription)))
    self.subscription = subscription
    onSubscription(subscription)
    if let initialDemand { subscription.request(initialDemand) }
  }

  package func receive(_ input: Input) -> Subscribers.Demand {
    history.append(.value(AnyHashable(input)))
    onValue(input)
    return demandPerValue
  }

  package func receive(completion: Subscribers.Completion<Failure>) {
    switch completion {
    case .finished: history.append(.finished)
    case .failure(let error): history.append(.failed(error as? Oops))
    }
    onCompletion()
  }

  package var description: String { "TrackingSubscriber" }
}
