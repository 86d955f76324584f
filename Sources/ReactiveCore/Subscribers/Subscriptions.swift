/// Ready-made subscriptions.
public enum Subscriptions {}

extension Subscriptions {
  /// A subscription that never delivers anything; requests and cancellation have no effect.
  public static var empty: any Subscription {
    EmptySubscription.shared
  }
}

/// The one subscription that does nothing.
private final class EmptySubscription: Subscription, OperatorPart, Sendable {
  static let shared = EmptySubscription()

  func request(_ demand: Subscribers.Demand) {}

  func cancel() {}

  var description: String { "Empty" }
}
