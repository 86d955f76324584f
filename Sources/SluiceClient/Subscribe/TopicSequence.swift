import ReactiveCore

/// A topic's values as an asynchronous sequence.
///
/// ```swift
/// for try await record in client.topic("jobs").records {
///   try await work(on: record)
/// }
/// ```
///
/// - Demand: the broker is asked for a record when the loop asks for it, and not before; with
///   ``SubscriptionPlan/Prefetch/keepFull(_:)`` so many ahead, which are kept here. So a loop that takes its time holds up nobody, and much goes
///   through quickly only with a prefetch.
/// - Each iteration is a subscription of its own, which stands from `makeAsyncIterator()` on. One task may use an iterator at a time.
/// - The loop ends when the topic is finished, and throws what ``RemoteTopic`` fails with otherwise.
/// - Cancelling the task, or leaving the loop, cancels the subscription: the broker hears of it at once. A cancelled loop ends without an error; what
///   was kept ahead is dropped.
public struct TopicSequence<Element>: AsyncSequence, Sendable {
  public typealias Failure = ClientError

  private let topic: RemoteTopic<Element>

  fileprivate init(_ topic: RemoteTopic<Element>) {
    self.topic = topic
  }

  /// Subscribes.
  public func makeAsyncIterator() -> Iterator {
    Iterator(topic)
  }

  /// One iteration.
  public struct Iterator: AsyncIteratorProtocol {
    public typealias Failure = ClientError

    private let lease: TopicWaiter<Element>.Lease

    fileprivate init(_ topic: RemoteTopic<Element>) {
      lease = TopicWaiter.Lease(topic)
    }

    /// Waits for the next value; nil at the end.
    public mutating func next() async throws(ClientError) -> Element? {
      try await lease.waiter.next(isolation: nil).outcome.get()
    }

    /// Waits for the next value; nil at the end.
    public mutating func next(isolation actor: isolated (any Actor)?) async throws(ClientError) -> Element? {
      try await lease.waiter.next(isolation: actor).outcome.get()
    }
  }
}

extension RemoteTopic {
  /// The topic's values as an asynchronous sequence, one asked for at a time.
  public var records: TopicSequence<Output> { TopicSequence(self) }
}
