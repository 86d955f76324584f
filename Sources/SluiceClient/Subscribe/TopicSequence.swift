import ReactiveCore

/// A topic's values as an asynchronous sequence.
///
/// ```swift
/// for try await record in client.topic("jobs").values {
///   try await work(on: record)
/// }
/// ```
///
/// - Demand: the client requests a record when the loop does; with ``SubscriptionPlan/Prefetch/keepFull(_:)`` that many ahead, which are kept
///   here. So a slow loop doesn't delay other subscribers, and high throughput needs a prefetch.
/// - Each iteration is a subscription, which begins with `makeAsyncIterator()`. One task may use an iterator at a time.
/// - The loop ends when the topic is finished, and throws what ``RemoteTopic`` fails with otherwise.
/// - Cancelling the task, or leaving the loop, cancels the subscription at once. A cancelled loop ends without an error, and drops the prefetched
///   values.
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
  /// The topic's values as an asynchronous sequence, requested one at a time. Replaces the `values` of other publishers, which throw untyped
  /// errors.
  public var values: TopicSequence<Output> { TopicSequence(self) }
}
