extension Publishers {
  /// Passes on what any number of publishers of one type deliver, as it comes.
  ///
  /// Unlike Combine, which then never finishes, it finishes at once if there are no publishers.
  public struct MergeMany<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The publishers.
    public let publishers: [Upstream]

    /// Merges the publishers given.
    @inlinable
    public init(_ upstream: Upstream...) {
      publishers = upstream
    }

    /// Merges the publishers of a sequence.
    @inlinable
    public init<S: Swift.Sequence>(_ upstream: S) where S.Element == Upstream {
      publishers = Array(upstream)
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let coordinator = MergeCoordinator(downstream: subscriber, count: publishers.count)
      subscriber.receive(subscription: coordinator)
      coordinator.start()
      for (index, publisher) in publishers.enumerated() {
        publisher.receive(subscriber: coordinator.side(index, subscriber))
      }
    }

    /// Merges with another publisher of the same type.
    @inlinable
    public func merge(with other: Upstream) -> Publishers.MergeMany<Upstream> {
      Publishers.MergeMany(publishers + [other])
    }
  }
}

extension Publishers.MergeMany: Equatable where Upstream: Equatable {}

extension Publishers.MergeMany: Sendable where Upstream: Sendable {}
