extension Publishers {
  /// Stops the program when upstream fails.
  public struct AssertNoFailure<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Never

    /// The upstream publisher.
    public let upstream: Upstream
    /// The prefix of the message.
    public let prefix: String
    /// The file named in the message.
    public let file: StaticString
    /// The line named in the message.
    public let line: UInt

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, prefix: String, file: StaticString, line: UInt) {
      self.upstream = upstream
      self.prefix = prefix
      self.file = file
      self.line = line
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Never {
      upstream.receive(
        subscriber: AssertNoFailureSubscriber<Output, Upstream.Failure, S>(
          prefix: prefix, file: file, line: line, downstream: subscriber))
    }
  }
}

extension Publishers.AssertNoFailure: Sendable where Upstream: Sendable {}

@usableFromInline
struct AssertNoFailureSubscriber<Input, Failure: Error, Downstream: Subscriber>: PassThroughSubscriber,
  OperatorPart
where Downstream.Input == Input, Downstream.Failure == Never {
  @usableFromInline let prefix: String
  @usableFromInline let file: StaticString
  @usableFromInline let line: UInt
  @usableFromInline let downstream: Downstream
  @usableFromInline let combineIdentifier = CombineIdentifier()

  @inlinable
  init(prefix: String, file: StaticString, line: UInt, downstream: Downstream) {
    self.prefix = prefix
    self.file = file
    self.line = line
    self.downstream = downstream
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand { downstream.receive(input) }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    switch completion {
    case .finished: downstream.receive(completion: .finished)
    case .failure(let error):
      fatalError(prefix.isEmpty ? "\(error)" : "\(prefix): \(error)", file: file, line: line)
    }
  }

  @usableFromInline var description: String { "AssertNoFailure" }

  @usableFromInline var customMirror: Mirror {
    return mirror(("file", file), ("line", line), ("prefix", prefix))
  }
}

extension Publisher {
  /// Stops the program when this publisher fails, in release builds too.
  ///
  /// - Parameters:
  ///   - prefix: The prefix of the message.
  ///   - file: The file named in the message.
  ///   - line: The line named in the message.
  @inlinable
  public func assertNoFailure(
    _ prefix: String = "", file: StaticString = #file, line: UInt = #line
  ) -> Publishers.AssertNoFailure<Self> {
    Publishers.AssertNoFailure(upstream: self, prefix: prefix, file: file, line: line)
  }
}
