/// A publisher that can be fed from outside.
public protocol Subject<Output, Failure>: AnyObject, Publisher {
  /// Sends a value to the subscribers.
  func send(_ value: Output)

  /// Ends the stream for all present and future subscribers. Only the first call counts.
  func send(completion: Subscribers.Completion<Failure>)

  /// Gives the subject a source to draw from. The subject requests from it when its own subscribers do.
  func send(subscription: any Subscription)
}

extension Subject where Output == Void {
  /// Sends the value that carries no information.
  public func send() {
    send(())
  }
}
