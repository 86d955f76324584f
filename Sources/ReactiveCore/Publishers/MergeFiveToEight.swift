// Merging more publishers than `Merge4` does, in the same way.

extension Publishers {
  /// Passes on what five publishers deliver, as it comes.
  public struct Merge5<
    A: Publisher, B: Publisher<A.Output, A.Failure>, C: Publisher<A.Output, A.Failure>,
    D: Publisher<A.Output, A.Failure>, E: Publisher<A.Output, A.Failure>
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
    /// The fifth publisher.
    public let e: E

    /// Merges five publishers.
    @inlinable
    public init(_ a: A, _ b: B, _ c: C, _ d: D, _ e: E) {
      (self.a, self.b, self.c, self.d, self.e) = (a, b, c, d, e)
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let coordinator = MergeCoordinator(downstream: subscriber, count: 5)
      subscriber.receive(subscription: coordinator)
      a.receive(subscriber: coordinator.side(0, subscriber))
      b.receive(subscriber: coordinator.side(1, subscriber))
      c.receive(subscriber: coordinator.side(2, subscriber))
      d.receive(subscriber: coordinator.side(3, subscriber))
      e.receive(subscriber: coordinator.side(4, subscriber))
    }
  }

  /// Passes on what six publishers deliver, as it comes.
  public struct Merge6<
    A: Publisher, B: Publisher<A.Output, A.Failure>, C: Publisher<A.Output, A.Failure>,
    D: Publisher<A.Output, A.Failure>, E: Publisher<A.Output, A.Failure>, F: Publisher<A.Output, A.Failure>
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
    /// The fifth publisher.
    public let e: E
    /// The sixth publisher.
    public let f: F

    /// Merges six publishers.
    @inlinable
    public init(_ a: A, _ b: B, _ c: C, _ d: D, _ e: E, _ f: F) {
      (self.a, self.b, self.c, self.d, self.e, self.f) = (a, b, c, d, e, f)
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let coordinator = MergeCoordinator(downstream: subscriber, count: 6)
      subscriber.receive(subscription: coordinator)
      a.receive(subscriber: coordinator.side(0, subscriber))
      b.receive(subscriber: coordinator.side(1, subscriber))
      c.receive(subscriber: coordinator.side(2, subscriber))
      d.receive(subscriber: coordinator.side(3, subscriber))
      e.receive(subscriber: coordinator.side(4, subscriber))
      f.receive(subscriber: coordinator.side(5, subscriber))
    }
  }

  /// Passes on what seven publishers deliver, as it comes.
  public struct Merge7<
    A: Publisher, B: Publisher<A.Output, A.Failure>, C: Publisher<A.Output, A.Failure>,
    D: Publisher<A.Output, A.Failure>, E: Publisher<A.Output, A.Failure>, F: Publisher<A.Output, A.Failure>,
    G: Publisher<A.Output, A.Failure>
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
    /// The fifth publisher.
    public let e: E
    /// The sixth publisher.
    public let f: F
    /// The seventh publisher.
    public let g: G

    /// Merges seven publishers.
    @inlinable
    public init(_ a: A, _ b: B, _ c: C, _ d: D, _ e: E, _ f: F, _ g: G) {
      (self.a, self.b, self.c, self.d, self.e, self.f, self.g) = (a, b, c, d, e, f, g)
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let coordinator = MergeCoordinator(downstream: subscriber, count: 7)
      subscriber.receive(subscription: coordinator)
      a.receive(subscriber: coordinator.side(0, subscriber))
      b.receive(subscriber: coordinator.side(1, subscriber))
      c.receive(subscriber: coordinator.side(2, subscriber))
      d.receive(subscriber: coordinator.side(3, subscriber))
      e.receive(subscriber: coordinator.side(4, subscriber))
      f.receive(subscriber: coordinator.side(5, subscriber))
      g.receive(subscriber: coordinator.side(6, subscriber))
    }
  }

  /// Passes on what eight publishers deliver, as it comes.
  public struct Merge8<
    A: Publisher, B: Publisher<A.Output, A.Failure>, C: Publisher<A.Output, A.Failure>,
    D: Publisher<A.Output, A.Failure>, E: Publisher<A.Output, A.Failure>, F: Publisher<A.Output, A.Failure>,
    G: Publisher<A.Output, A.Failure>, H: Publisher<A.Output, A.Failure>
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
    /// The fifth publisher.
    public let e: E
    /// The sixth publisher.
    public let f: F
    /// The seventh publisher.
    public let g: G
    /// The eighth publisher.
    public let h: H

    /// Merges eight publishers.
    @inlinable
    public init(_ a: A, _ b: B, _ c: C, _ d: D, _ e: E, _ f: F, _ g: G, _ h: H) {
      (self.a, self.b, self.c, self.d, self.e, self.f, self.g, self.h) = (a, b, c, d, e, f, g, h)
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let coordinator = MergeCoordinator(downstream: subscriber, count: 8)
      subscriber.receive(subscription: coordinator)
      a.receive(subscriber: coordinator.side(0, subscriber))
      b.receive(subscriber: coordinator.side(1, subscriber))
      c.receive(subscriber: coordinator.side(2, subscriber))
      d.receive(subscriber: coordinator.side(3, subscriber))
      e.receive(subscriber: coordinator.side(4, subscriber))
      f.receive(subscriber: coordinator.side(5, subscriber))
      g.receive(subscriber: coordinator.side(6, subscriber))
      h.receive(subscriber: coordinator.side(7, subscriber))
    }
  }
}

extension Publishers.Merge5: Equatable
where A: Equatable, B: Equatable, C: Equatable, D: Equatable, E: Equatable {}

extension Publishers.Merge5: Sendable where A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable {}

extension Publishers.Merge6: Equatable
where A: Equatable, B: Equatable, C: Equatable, D: Equatable, E: Equatable, F: Equatable {}

extension Publishers.Merge6: Sendable
where A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable, F: Sendable {}

extension Publishers.Merge7: Equatable
where A: Equatable, B: Equatable, C: Equatable, D: Equatable, E: Equatable, F: Equatable, G: Equatable {}

extension Publishers.Merge7: Sendable
where A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable, F: Sendable, G: Sendable {}

extension Publishers.Merge8: Equatable
where
  A: Equatable, B: Equatable, C: Equatable, D: Equatable, E: Equatable, F: Equatable, G: Equatable,
  H: Equatable
{}

extension Publishers.Merge8: Sendable
where A: Sendable, B: Sendable, C: Sendable, D: Sendable, E: Sendable, F: Sendable, G: Sendable, H: Sendable {
}
