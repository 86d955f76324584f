import ReactiveCore

// A subscriber of a remote topic is called on the client's thread. Closures that are given straight to a topic have to be `@Sendable`, so that the
// compiler refuses those that use variables of another thread: those of main.swift, of a class of the main actor, or of the surrounding function.
// A function value that is not `@Sendable` still selects the operator of all publishers.

extension RemoteTopic {
  /// Subscribes with closures, and asks for everything.
  ///
  /// - Parameters:
  ///   - receiveCompletion: called once, on the client's loop; never after cancelling.
  ///   - receiveValue: called on the client's loop, once for each value.
  /// - Returns: what cancels the subscription, also when it is released.
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
  /// Subscribes with closures, and asks for everything.
  ///
  /// - Parameters:
  ///   - receiveCompletion: called once, on the client's loop; never after cancelling.
  ///   - receiveValue: called on the client's loop, once for each event.
  /// - Returns: what cancels the subscription, also when it is released.
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
