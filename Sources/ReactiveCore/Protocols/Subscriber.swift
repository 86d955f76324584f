/// A type that receives values from a publisher, at its own pace.
///
/// The calls below never overlap for one subscription. They may come from any thread.
public protocol Subscriber<Input, Failure>: CustomCombineIdentifierConvertible {
  /// The kind of values received.
  associatedtype Input
  /// The kind of error a stream may end with.
  associatedtype Failure: Error

  /// Tells the subscriber that it is attached. It asks for values through the subscription, now or later.
  func receive(subscription: any Subscription)

  /// Delivers one value.
  ///
  /// - Returns: How many more values are wanted, on top of what was asked for before.
  func receive(_ input: Input) -> Subscribers.Demand

  /// Tells the subscriber that the stream has ended. Nothing follows.
  func receive(completion: Subscribers.Completion<Failure>)
}

extension Subscriber where Input == Void {
  /// Delivers the value that carries no information.
  public func receive() -> Subscribers.Demand {
    receive(())
  }
}
