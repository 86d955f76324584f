/// The values of a publisher that cannot fail, as an asynchronous sequence.
///
/// Each iteration subscribes anew. The loop requests one value at a time. The loop ends when the publisher finishes. Cancelling
/// the task, or leaving the loop, cancels the subscription.
public struct AsyncPublisher<P: Publisher>: AsyncSequence where P.Failure == Never {
  public typealias Element = P.Output
  public typealias Failure = Never

  private let publisher: P

  /// The values of a publisher.
  public init(_ publisher: P) { self.publisher = publisher }

  /// Subscribes.
  public func makeAsyncIterator() -> Iterator { Iterator(publisher) }

  /// One iteration.
  public struct Iterator: AsyncIteratorProtocol {
    public typealias Element = P.Output
    public typealias Failure = Never

    private let holder: CancellingAsyncBridge<P.Output, Never>

    fileprivate init(_ publisher: P) { holder = CancellingAsyncBridge(publisher) }

    /// Asks for the next value and waits for it; nil at the end.
    public mutating func next() async -> P.Output? { await holder.bridge.next().event.get() }

    /// Asks for the next value and waits for it; nil at the end.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> P.Output? {
      await holder.bridge.next(isolation: actor).event.get()
    }
  }
}

/// The values of a publisher that may fail, as an asynchronous sequence that throws.
///
/// Each iteration subscribes anew. The loop requests one value at a time. The loop ends when the publisher finishes, and throws
/// its error when it fails. Cancelling the task, or leaving the loop, cancels the subscription.
public struct AsyncThrowingPublisher<P: Publisher>: AsyncSequence {
  public typealias Element = P.Output
  public typealias Failure = any Error

  private let publisher: P

  /// The values of a publisher.
  public init(_ publisher: P) { self.publisher = publisher }

  /// Subscribes.
  public func makeAsyncIterator() -> Iterator { Iterator(publisher) }

  /// One iteration.
  public struct Iterator: AsyncIteratorProtocol {
    public typealias Element = P.Output
    public typealias Failure = any Error

    private let holder: CancellingAsyncBridge<P.Output, P.Failure>

    fileprivate init(_ publisher: P) { holder = CancellingAsyncBridge(publisher) }

    /// Asks for the next value and waits for it; nil at the end.
    public mutating func next() async throws -> P.Output? { try await holder.bridge.next().event.get() }

    /// Asks for the next value and waits for it; nil at the end.
    public mutating func next(isolation actor: isolated (any Actor)?) async throws -> P.Output? {
      try await holder.bridge.next(isolation: actor).event.get()
    }
  }
}

extension AsyncPublisher: Sendable where P: Sendable {}
extension AsyncThrowingPublisher: Sendable where P: Sendable {}

/// Cancels the subscription when the iterator is released.
private final class CancellingAsyncBridge<Input, Failure: Error> {
  let bridge = AsyncBridge<Input, Failure>()

  init<P: Publisher>(_ publisher: P) where P.Output == Input, P.Failure == Failure {
    publisher.subscribe(bridge)
  }

  deinit { bridge.cancel() }
}

extension Publisher where Failure == Never {
  /// The values as an asynchronous sequence.
  public var values: AsyncPublisher<Self> { AsyncPublisher(self) }
}

extension Publisher {
  /// The values as an asynchronous sequence, which throws if this publisher fails.
  public var values: AsyncThrowingPublisher<Self> { AsyncThrowingPublisher(self) }
}
