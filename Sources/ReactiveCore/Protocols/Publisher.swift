/// A type that delivers a sequence of values over time to the subscribers that ask for them.
///
/// A publisher does nothing until a subscriber is attached. Each subscriber gets, in this order: one subscription, at most as
/// many values as it has requested, and at most one completion, after which it gets nothing.
public protocol Publisher<Output, Failure> {
  /// The kind of values delivered.
  associatedtype Output
  /// The kind of error a stream may end with; `Never` if it cannot fail.
  associatedtype Failure: Error

  /// Attaches a subscriber. Implemented by publishers; called through ``subscribe(_:)-(S)``.
  func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure
}

extension Publisher {
  /// Attaches a subscriber, which gets its subscription on the calling thread unless the publisher says otherwise.
  // Always inlined: each layer of a pipeline calls this function with a longer type, which the compiler takes for an endless
  // specialisation. From the third layer on it would stop specialising, and values would take about fifty times as long.
  @inlinable @inline(__always)
  public func subscribe<S: Subscriber>(_ subscriber: S) where S.Input == Output, S.Failure == Failure {
    receive(subscriber: subscriber)
  }

  /// Attaches a subject, which passes on what it gets to its own subscribers.
  ///
  /// - Returns: An object that detaches the subject again, when cancelled or released. The subject's subscribers get no completion.
  @inlinable
  public func subscribe<S: Subject>(_ subject: S) -> AnyCancellable
  where S.Output == Output, S.Failure == Failure {
    let subscriber = SubjectSubscriber(subject)
    subscribe(subscriber)
    return AnyCancellable(subscriber)
  }
}

/// A publisher that starts to deliver when it is connected, so that all its subscribers can be in place first.
public protocol ConnectablePublisher<Output, Failure>: Publisher {
  /// Starts delivering.
  ///
  /// - Returns: An object that stops it again, for all subscribers, without a completion.
  func connect() -> any Cancellable
}

/// A publisher to which a program sends values.
public protocol Subject<Output, Failure>: AnyObject, Publisher {
  /// Sends a value to the subscribers.
  func send(_ value: Output)

  /// Ends the stream for all present and future subscribers. Only the first call counts.
  func send(completion: Subscribers.Completion<Failure>)

  /// Gives the subject a source. The subject requests values from it when its own subscribers do.
  func send(subscription: any Subscription)
}

extension Subject where Output == Void {
  /// Sends the value that carries no information.
  public func send() { send(()) }
}

/// The types of this module that act as publishers.
public enum Publishers {}
