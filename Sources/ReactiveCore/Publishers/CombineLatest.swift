// Combining the latest values of two, three or four publishers: the types differ in their upstreams alone.

extension Publishers {
  /// Combines each value of two publishers with the latest of the other.
  public struct CombineLatest<A: Publisher, B: Publisher>: Publisher where A.Failure == B.Failure {
    public typealias Output = (A.Output, B.Output)
    public typealias Failure = A.Failure

    /// The first publisher.
    public let a: A
    /// The second publisher.
    public let b: B

    /// Combines the latest values of two publishers.
    @inlinable
    public init(_ a: A, _ b: B) {
      self.a = a
      self.b = b
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let coordinator = CombineLatestCoordinator<A.Output, B.Output, Never, Never, Failure, S>(
        downstream: subscriber, count: 2
      ) { unsafe ($0.a.unsafelyUnwrapped, $0.b.unsafelyUnwrapped) }
      a.receive(subscriber: coordinator.side(0, subscriber) { .a($0) })
      b.receive(subscriber: coordinator.side(1, subscriber) { .b($0) })
      coordinator.start(subscriber)
    }
  }

  /// Combines each value of three publishers with the latest of the others.
  public struct CombineLatest3<A: Publisher, B: Publisher, C: Publisher>: Publisher
  where A.Failure == B.Failure, B.Failure == C.Failure {
    public typealias Output = (A.Output, B.Output, C.Output)
    public typealias Failure = A.Failure

    /// The first publisher.
    public let a: A
    /// The second publisher.
    public let b: B
    /// The third publisher.
    public let c: C

    /// Combines the latest values of three publishers.
    @inlinable
    public init(_ a: A, _ b: B, _ c: C) { (self.a, self.b, self.c) = (a, b, c) }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let coordinator = CombineLatestCoordinator<A.Output, B.Output, C.Output, Never, Failure, S>(
        downstream: subscriber, count: 3
      ) { unsafe ($0.a.unsafelyUnwrapped, $0.b.unsafelyUnwrapped, $0.c.unsafelyUnwrapped) }
      a.receive(subscriber: coordinator.side(0, subscriber) { .a($0) })
      b.receive(subscriber: coordinator.side(1, subscriber) { .b($0) })
      c.receive(subscriber: coordinator.side(2, subscriber) { .c($0) })
      coordinator.start(subscriber)
    }
  }

  /// Combines each value of four publishers with the latest of the others.
  public struct CombineLatest4<A: Publisher, B: Publisher, C: Publisher, D: Publisher>: Publisher
  where A.Failure == B.Failure, B.Failure == C.Failure, C.Failure == D.Failure {
    public typealias Output = (A.Output, B.Output, C.Output, D.Output)
    public typealias Failure = A.Failure

    /// The first publisher.
    public let a: A
    /// The second publisher.
    public let b: B
    /// The third publisher.
    public let c: C
    /// The fourth publisher.
    public let d: D

    /// Combines the latest values of four publishers.
    @inlinable
    public init(_ a: A, _ b: B, _ c: C, _ d: D) { (self.a, self.b, self.c, self.d) = (a, b, c, d) }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let coordinator = CombineLatestCoordinator<A.Output, B.Output, C.Output, D.Output, Failure, S>(
        downstream: subscriber, count: 4
      ) {
        unsafe (
          $0.a.unsafelyUnwrapped, $0.b.unsafelyUnwrapped, $0.c.unsafelyUnwrapped, $0.d.unsafelyUnwrapped
        )
      }
      a.receive(subscriber: coordinator.side(0, subscriber) { .a($0) })
      b.receive(subscriber: coordinator.side(1, subscriber) { .b($0) })
      c.receive(subscriber: coordinator.side(2, subscriber) { .c($0) })
      d.receive(subscriber: coordinator.side(3, subscriber) { .d($0) })
      coordinator.start(subscriber)
    }
  }
}

extension Publishers.CombineLatest: Equatable where A: Equatable, B: Equatable {}
extension Publishers.CombineLatest: Sendable where A: Sendable, B: Sendable {}
extension Publishers.CombineLatest3: Equatable where A: Equatable, B: Equatable, C: Equatable {}
extension Publishers.CombineLatest3: Sendable where A: Sendable, B: Sendable, C: Sendable {}
extension Publishers.CombineLatest4: Equatable where A: Equatable, B: Equatable, C: Equatable, D: Equatable {}
extension Publishers.CombineLatest4: Sendable where A: Sendable, B: Sendable, C: Sendable, D: Sendable {}

extension Publisher {
  /// Combines each value of this publisher or another with the latest of the other, as a pair, once both have one.
  ///
  /// A request goes to both. A value that arrives without demand becomes the latest of its publisher, but delivers nothing. Finishes
  /// when both have; fails, and cancels the other, when one fails. Values may come from several threads; downstream gets one pair at
  /// a time. Unlike Combine, which notes a value that the subscriber causes while it gets a pair and delivers nothing for it, the
  /// value makes the next pair.
  @inlinable
  public func combineLatest<P: Publisher>(_ other: P) -> Publishers.CombineLatest<Self, P>
  where P.Failure == Failure {
    Publishers.CombineLatest(self, other)
  }

  /// Delivers the result of a function of each value of this publisher or another and the latest of the other.
  @inlinable
  public func combineLatest<P: Publisher, T>(
    _ other: P, _ transform: @escaping (Output, P.Output) -> T
  ) -> Publishers.Map<Publishers.CombineLatest<Self, P>, T> where P.Failure == Failure {
    Publishers.Map(upstream: combineLatest(other)) { transform($0.0, $0.1) }
  }

  /// Combines each value of this publisher or two others with the latest of the others.
  @inlinable
  public func combineLatest<P: Publisher, Q: Publisher>(
    _ publisher1: P, _ publisher2: Q
  ) -> Publishers.CombineLatest3<Self, P, Q> where P.Failure == Failure, Q.Failure == Failure {
    Publishers.CombineLatest3(self, publisher1, publisher2)
  }

  /// Delivers the result of a function of each value of this publisher or two others and the latest of the others.
  @inlinable
  public func combineLatest<P: Publisher, Q: Publisher, T>(
    _ publisher1: P, _ publisher2: Q, _ transform: @escaping (Output, P.Output, Q.Output) -> T
  ) -> Publishers.Map<Publishers.CombineLatest3<Self, P, Q>, T>
  where P.Failure == Failure, Q.Failure == Failure {
    Publishers.Map(upstream: combineLatest(publisher1, publisher2)) { transform($0.0, $0.1, $0.2) }
  }

  /// Combines each value of this publisher or three others with the latest of the others.
  @inlinable
  public func combineLatest<P: Publisher, Q: Publisher, R: Publisher>(
    _ publisher1: P, _ publisher2: Q, _ publisher3: R
  ) -> Publishers.CombineLatest4<Self, P, Q, R>
  where P.Failure == Failure, Q.Failure == Failure, R.Failure == Failure {
    Publishers.CombineLatest4(self, publisher1, publisher2, publisher3)
  }

  /// Delivers the result of a function of each value of this publisher or three others and the latest of the others.
  @inlinable
  public func combineLatest<P: Publisher, Q: Publisher, R: Publisher, T>(
    _ publisher1: P, _ publisher2: Q, _ publisher3: R,
    _ transform: @escaping (Output, P.Output, Q.Output, R.Output) -> T
  ) -> Publishers.Map<Publishers.CombineLatest4<Self, P, Q, R>, T>
  where P.Failure == Failure, Q.Failure == Failure, R.Failure == Failure {
    Publishers.Map(upstream: combineLatest(publisher1, publisher2, publisher3)) {
      transform($0.0, $0.1, $0.2, $0.3)
    }
  }
}
