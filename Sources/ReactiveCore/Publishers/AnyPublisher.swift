/// A publisher whose type is hidden.
///
/// Hiding the type of an `AnyPublisher` again adds no layer. Upstream sees an ``AnySubscriber`` with the identity and
/// the description of the subscriber within.
public struct AnyPublisher<Output, Failure: Error>: Publisher, CustomStringConvertible,
  CustomPlaygroundDisplayConvertible
{
  // Compiled where the publisher's type is known, with one type of subscriber, so that everything upstream of the boundary is
  // as fast as if there were none.
  @usableFromInline let attach: (AnySubscriber<Output, Failure>) -> Void

  /// Hides the type of a publisher.
  @inlinable
  public init<P: Publisher>(_ publisher: P) where P.Output == Output, P.Failure == Failure {
    if P.self == AnyPublisher<Output, Failure>.self {
      self = unsafe unsafeBitCast(publisher, to: AnyPublisher<Output, Failure>.self)
    } else {
      attach = { publisher.receive(subscriber: $0) }
    }
  }

  @inlinable @inline(__always)
  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    attach(AnySubscriber(subscriber))
  }

  /// `AnyPublisher`.
  public var description: String { "AnyPublisher" }

  /// The description.
  public var playgroundDescription: Any { description }
}

// A publisher describes a stream and is not changed by subscribing. The type system can't check the captures of its
// functions any more. A program that hides a publisher that must stay on one thread must keep it there itself.
extension AnyPublisher: @unchecked Sendable where Output: Sendable {}

extension Publisher {
  /// Hides the type of this publisher.
  @inlinable
  public func eraseToAnyPublisher() -> AnyPublisher<Output, Failure> { AnyPublisher(self) }
}
