extension Publishers {
  /// Delivers the last value that satisfies a predicate, if there is one, when upstream finishes, and fails if the function throws.
  public struct TryLastWhere<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = any Error

    /// Where the values come from.
    public let upstream: Upstream
    /// What is asked of each value.
    public let predicate: (Output) throws -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Output) throws -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.receive(
        subscriber: ReductionSubscriber(
          TryLastWhereReduction<Output, Upstream.Failure>(predicate), downstream: subscriber))
    }
  }
}

@usableFromInline
struct TryLastWhereReduction<Input, UpstreamFailure: Error>: Reduction {
  @usableFromInline typealias Output = Input
  @usableFromInline typealias Failure = any Error

  @usableFromInline var result: Input?
  @usableFromInline let predicate: (Input) throws -> Bool

  @inlinable
  init(_ predicate: @escaping (Input) throws -> Bool) {
    self.predicate = predicate
  }

  @inlinable static var name: StaticString { "TryLastWhere" }

  @inlinable
  mutating func receive(_ input: Input) -> ReductionStep {
    do {
      guard try predicate(input) else { return .more }
      result = input
      return .more
    } catch {
      return .fail(error)
    }
  }

  @inlinable
  func convert(_ failure: UpstreamFailure) -> any Error { failure }

  @inlinable
  func convert(thrown error: any Error) -> any Error { error }
}

extension Publisher {
  /// Delivers the last value that satisfies a predicate, if there is one, when upstream finishes, and fails if the function throws.
  @inlinable
  public func tryLast(
    where predicate: @escaping (Output) throws -> Bool
  ) -> Publishers.TryLastWhere<Self> {
    Publishers.TryLastWhere(upstream: self, predicate: predicate)
  }
}
