extension Publishers {
  /// Passes on what two publishers deliver, as it comes.
  public struct Merge<A: Publisher, B: Publisher<A.Output, A.Failure>>: Publisher {
    public typealias Output = A.Output
    public typealias Failure = A.Failure

    /// The first publisher.
    public let a: A
    /// The second publisher.
    public let b: B

    /// Merges two publishers.
    @inlinable
    public init(_ a: A, _ b: B) {
      self.a = a
      self.b = b
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let coordinator = MergeCoordinator(downstream: subscriber, count: 2)
      subscriber.receive(subscription: coordinator)
      a.receive(subscriber: coordinator.side(0, subscriber))
      b.receive(subscriber: coordinator.side(1, subscriber))
    }
  }

  /// Passes on what three publishers deliver, as it comes.
  public struct Merge3<A: Publisher, B: Publisher<A.Output, A.Failure>, C: Publisher<A.Output, A.Failure>>:
    Publisher
  {
    public typealias Output = A.Output
    public typealias Failure = A.Failure

    /// The first publisher.
    public let a: A
    /// The second publisher.
    public let b: B
    /// The third publisher.
    public let c: C

    /// Merges three publishers.
    @inlinable
    public init(_ a: A, _ b: B, _ c: C) { (self.a, self.b, self.c) = (a, b, c) }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let coordinator = MergeCoordinator(downstream: subscriber, count: 3)
      subscriber.receive(subscription: coordinator)
      a.receive(subscriber: coordinator.side(0, subscriber))
      b.receive(subscriber: coordinator.side(1, subscriber))
      c.receive(subscriber: coordinator.side(2, subscriber))
    }
  }

  /// Passes on what four publishers deliver, as it comes.
  public struct Merge4<
    A: Publisher, B: Publisher<A.Output, A.Failure>, C: Publisher<A.Output, A.Failure>,
    D: Publisher<A.Output, A.Failure>
  >: Publisher {
    public typealias Output = A.Output
    public typealias Failure = A.Failure

    /// The first publisher.
    public let a: A
    /// The second publisher.
    public let b: B
    /// The third publisher.
    public let c: C
    /// The fourth publisher.
    public let d: D

    /// Merges four publishers.
    @inlinable
    public init(_ a: A, _ b: B, _ c: C, _ d: D) { (self.a, self.b, self.c, self.d) = (a, b, c, d) }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let coordinator = MergeCoordinator(downstream: subscriber, count: 4)
      subscriber.receive(subscription: coordinator)
      a.receive(subscriber: coordinator.side(0, subscriber))
      b.receive(subscriber: coordinator.side(1, subscriber))
      c.receive(subscriber: coordinator.side(2, subscriber))
      d.receive(subscriber: coordinator.side(3, subscriber))
    }
  }

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
    public init(_ upstream: Upstream...) { publishers = upstream }

    /// Merges the publishers of a sequence.
    @inlinable
    public init<S: Swift.Sequence>(_ upstream: S) where S.Element == Upstream { publishers = Array(upstream) }

    @inlinable @inline(__always)
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

// Merging a fixed number of publishers: one type for each number, all with the same subscription. The types differ in their
// upstreams alone.

extension Publishers.Merge: Equatable where A: Equatable, B: Equatable {}
extension Publishers.Merge: Sendable where A: Sendable, B: Sendable {}
extension Publishers.Merge3: Equatable where A: Equatable, B: Equatable, C: Equatable {}
extension Publishers.Merge3: Sendable where A: Sendable, B: Sendable, C: Sendable {}
extension Publishers.Merge4: Equatable where A: Equatable, B: Equatable, C: Equatable, D: Equatable {}
extension Publishers.Merge4: Sendable where A: Sendable, B: Sendable, C: Sendable, D: Sendable {}
extension Publishers.MergeMany: Equatable where Upstream: Equatable {}
extension Publishers.MergeMany: Sendable where Upstream: Sendable {}
