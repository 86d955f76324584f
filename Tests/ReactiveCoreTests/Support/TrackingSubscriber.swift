import ReactiveCore

/// Records what it gets; asks for what it is told to.
final class TrackingSubscriber<Input: Hashable, Failure: Error>: Subscriber, CustomStringConvertible {
  let history: History
  var subscription: (any Subscription)?

  /// What to request on subscription; nil for nothing.
  var initialDemand: Subscribers.Demand?
  /// What to return for each value.
  var demandPerValue: Subscribers.Demand
  var onSubscription: (any Subscription) -> Void = { _ in }
  var onValue: (Input) -> Void = { _ in }
  var onCompletion: () -> Void = {}
  var onDeinit: () -> Void = {}

  init(
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

  func receive(subscription: any Subscription) {
    history.events.append(.subscription(String(describing: subscription)))
    self.subscription = subscription
    onSubscription(subscription)
    if let initialDemand { subscription.request(initialDemand) }
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    history.events.append(.value(AnyHashable(input)))
    onValue(input)
    return demandPerValue
  }

  func receive(completion: Subscribers.Completion<Failure>) {
    switch completion {
    case .finished: history.events.append(.finished)
    case .failure(let error): history.events.append(.failed(error as? Oops))
    }
    onCompletion()
  }

  var description: String { "TrackingSubscriber" }
}
