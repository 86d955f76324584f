// Zipping two, three or four publishers: the types differ in their upstreams alone.

extension Publishers {
  /// Delivers the first values of two publishers as a pair, then the second, and so on.
  public struct Zip<A: Publisher, B: Publisher>: Publisher where A.Failure == B.Failure {
    public typealias Output = (A.Output, B.Output)
    public typealias Failure = A.Failure

    /// The first publisher.
    public let a: A
    /// The second publisher.
    public let b: B

    /// Zips two publishers.
    @inlinable
    public init(_ a: A, _ b: B) {
      self.a = a
      self.b = b
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let coordinator = ZipCoordinator<A.Output, B.Output, Never, Never, Failure, S>(
        downstream: subscriber, count: 2
      ) { ($0.takeA(), $0.takeB()) }
      a.receive(subscriber: coordinator.side(0, subscriber) { .a($0) })
      b.receive(subscriber: coordinator.side(1, subscriber) { .b($0) })
    }
  }

  /// Delivers the first values of three publishers as a triple, then the second, and so on.
  public struct Zip3<A: Publisher, B: Publisher, C: Publisher>: Publisher
  where A.Failure == B.Failure, B.Failure == C.Failure {
    public typealias Output = (A.Output, B.Output, C.Output)
    public typealias Failure = A.Failure

    /// The first publisher.
    public let a: A
    /// The second publisher.
    public let b: B
    /// The third publisher.
    public let c: C

    /// Zips three publishers.
    @inlinable
    public init(_ a: A, _ b: B, _ c: C) { (self.a, self.b, self.c) = (a, b, c) }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let coordinator = ZipCoordinator<A.Output, B.Output, C.Output, Never, Failure, S>(
        downstream: subscriber, count: 3
      ) { ($0.takeA(), $0.takeB(), $0.takeC()) }
      a.receive(subscriber: coordinator.side(0, subscriber) { .a($0) })
      b.receive(subscriber: coordinator.side(1, subscriber) { .b($0) })
      c.receive(subscriber: coordinator.side(2, subscriber) { .c($0) })
    }
  }

  /// Delivers the first values of four publishers together, then the second, and so on.
  public struct Zip4<A: Publisher, B: Publisher, C: Publisher, D: Publisher>: Publisher
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

    /// Zips four publishers.
    @inlinable
    public init(_ a: A, _ b: B, _ c: C, _ d: D) { (self.a, self.b, self.c, self.d) = (a, b, c, d) }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let coordinator = ZipCoordinator<A.Output, B.Output, C.Output, D.Output, Failure, S>(
        downstream: subscriber, count: 4
      ) { ($0.takeA(), $0.takeB(), $0.takeC(), $0.takeD()) }
      a.receive(subscriber: coordinator.side(0, subscriber) { .a($0) })
      b.receive(subscriber: coordinator.side(1, subscriber) { .b($0) })
      c.receive(subscriber: coordinator.side(2, subscriber) { .c($0) })
      d.receive(subscriber: coordinator.side(3, subscriber) { .d($0) })
    }
  }
}

extension Publishers.Zip: Equatable where A: Equatable, B: Equatable {}
extension Publishers.Zip: Sendable where A: Sendable, B: Sendable {}
extension Publishers.Zip3: Equatable where A: Equatable, B: Equatable, C: Equatable {}
extension Publishers.Zip3: Sendable where A: Sendable, B: Sendable, C: Sendable {}
extension Publishers.Zip4: Equatable where A: Equatable, B: Equatable, C: Equatable, D: Equatable {}
extension Publishers.Zip4: Sendable where A: Sendable, B: Sendable, C: Sendable, D: Sendable {}

extension Publisher {
  /// Delivers the first values of this publisher and another as a pair, then the second, and so on.
  ///
  /// A request goes to both. Values that wait for their counterpart are kept, however many they are. Finishes, and cancels the
  /// other, as soon as one has finished and all its values have been paired; fails, and cancels the other, when one fails. Values
  /// may come from several threads; downstream gets one pair at a time. Unlike Combine, which passes it on at once, a request made
  /// while downstream gets a pair goes to both after that pair, so that the stack does not grow.
  @inlinable
  public func zip<P: Publisher>(_ other: P) -> Publishers.Zip<Self, P> where P.Failure == Failure {
    Publishers.Zip(self, other)
  }

  /// Delivers the result of a function of the first values of this publisher and another, then of the second, and so on.
  @inlinable
  public func zip<P: Publisher, T>(
    _ other: P, _ transform: @escaping (Output, P.Output) -> T
  ) -> Publishers.Map<Publishers.Zip<Self, P>, T> where P.Failure == Failure {
    Publishers.Map(upstream: zip(other)) { transform($0.0, $0.1) }
  }

  /// Delivers the first values of this publisher and two others as a triple, then the second, and so on.
  @inlinable
  public func zip<P: Publisher, Q: Publisher>(
    _ publisher1: P, _ publisher2: Q
  ) -> Publishers.Zip3<Self, P, Q> where P.Failure == Failure, Q.Failure == Failure {
    Publishers.Zip3(self, publisher1, publisher2)
  }

  /// Delivers the result of a function of the first values of this publisher and two others, then of the second, and so on.
  @inlinable
  public func zip<P: Publisher, Q: Publisher, T>(
    _ publisher1: P, _ publisher2: Q, _ transform: @escaping (Output, P.Output, Q.Output) -> T
  ) -> Publishers.Map<Publishers.Zip3<Self, P, Q>, T> where P.Failure == Failure, Q.Failure == Failure {
    Publishers.Map(upstream: zip(publisher1, publisher2)) { transform($0.0, $0.1, $0.2) }
  }

  /// Delivers the first values of this publisher and three others together, then the second, and so on.
  @inlinable
  public func zip<P: Publisher, Q: Publisher, R: Publisher>(
    _ publisher1: P, _ publisher2: Q, _ publisher3: R
  ) -> Publishers.Zip4<Self, P, Q, R>
  where P.Failure == Failure, Q.Failure == Failure, R.Failure == Failure {
    Publishers.Zip4(self, publisher1, publisher2, publisher3)
  }

  /// Delivers the result of a function of the first values of this publisher and three others, then of the second, and so on.
  @inlinable
  public func zip<P: Publisher, Q: Publisher, R: Publisher, T>(
    _ publisher1: P, _ publisher2: Q, _ publisher3: R,
    _ transform: @escaping (Output, P.Output, Q.Output, R.Output) -> T
  ) -> Publishers.Map<Publishers.Zip4<Self, P, Q, R>, T>
  where P.Failure == Failure, Q.Failure == Failure, R.Failure == Failure {
    Publishers.Map(upstream: zip(publisher1, publisher2, publisher3)) { transform($0.0, $0.1, $0.2, $0.3) }
  }
}
