extension Publishers {
  /// Passes on the values that differ from the one before, and fails if the predicate throws.
  public struct TryRemoveDuplicates<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = any Error

    /// Where the values come from.
    public let upstream: Upstream
    /// Says whether the second of two values repeats the first.
    public let predicate: (Output, Output) throws -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Output, Output) throws -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.receive(
        subscriber: StageSubscriber(
          TryRemoveDuplicatesStage<Output, Upstream.Failure>(predicate), downstream: subscriber))
    }
  }
}

@usableFromInline
struct TryRemoveDuplicatesStage<Input, UpstreamFailure: Error>: Stage {
  @usableFromInline typealias Output = Input
  @usableFromInline typealias Failure = any Error

  @usableFromInline var last: Input?
  @usableFromInline let isDuplicate: (Input, Input) throws -> Bool

  @inlinable
  init(_ isDuplicate: @escaping (Input, Input) throws -> Bool) {
    self.isDuplicate = isDuplicate
  }

  @inlinable static var name: StaticString { "TryRemoveDuplicates" }

  @inlinable
  mutating func receive(_ input: Input) -> Verdict<Input, any Error> {
    do {
      if let last, try isDuplicate(last, input) { return .drop }
      last = input
      return .pass(input)
    } catch {
      return .fail(error)
    }
  }

  @inlinable
  func convert(_ failure: UpstreamFailure) -> any Error { failure }
}

extension Publisher {
  /// Passes on the values that do not repeat the last one passed on, and fails if the predicate throws.
  ///
  /// - Parameter predicate: Says whether the second of two values repeats the first.
  @inlinable
  public func tryRemoveDuplicates(
    by predicate: @escaping (Output, Output) throws -> Bool
  ) -> Publishers.TryRemoveDuplicates<Self> {
    Publishers.TryRemoveDuplicates(upstream: self, predicate: predicate)
  }
}
