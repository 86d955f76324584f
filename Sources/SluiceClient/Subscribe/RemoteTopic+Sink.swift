import ReactiveCore

// The client's thread calls a remote topic's subscribers. These `sink` functions take `@Sendable` closures, so the compiler refuses closures that use
// variables of another thread: those of main.swift, of a class of the main actor, or of the surrounding function. A function value that isn't
// `@Sendable` still selects the operator of all publishers.

extension RemoteTopic {
  /// Subscribes with closures, and requests all values.
  ///
  /// - Parameters:
  ///   - receiveCompletion: called once, on the client's loop; never after cancelling.
  ///   - receiveValue: called on the client's loop, once for each value.
  /// - Returns: cancels the subscription when it is cancelled or released.
  public func sink(
    receiveCompletion: @escaping @Sendable (Subscribers.Completion<ClientError>) -> Void,
    receiveValue: @escaping @Sendable (Output) -> Void
  ) -> AnyCancellable {
    let sink = Subscribers.Sink<Output, ClientError>(
      receiveCompletion: receiveCompletion, receiveValue: receiveValue)
    subscribe(sink)
    return AnyCancellable(sink)
  }
}

extension TopicEvents {
  /// Subscribes with closures, and requests all values.
  ///
  /// - Parameters:
  ///   - receiveCompletion: called once, on the client's loop; never after cancelling.
  ///   - receiveValue: called on the client's loop, once for each event.
  /// - Returns: cancels the subscription when it is cancelled or released.
  public func sink(
    receiveCompletion: @escaping @Sendable (Subscribers.Completion<ClientError>) -> Void,
    receiveValue: @escaping @Sendable (TopicEvent<Value>) -> Void
  ) -> AnyCancellable {
    let sink = Subscribers.Sink<TopicEvent<Value>, ClientError>(
      receiveCompletion: receiveCompletion, receiveValue: receiveValue)
    subscribe(sink)
    return AnyCancellable(sink)
  }
}
