extension Optional {
  /// A publisher of the value, if there is one.
  @inlinable
  public var publisher: Optional<Wrapped>.Publisher {
    Publisher(self)
  }

  /// Delivers the value of an optional if there is one, then finishes.
  public struct Publisher: ReactiveCore.Publisher {
    public typealias Output = Wrapped
    public typealias Failure = Never

    /// The value.
    public let output: Wrapped?

    /// A publisher of at most one value.
    @inlinable
    public init(_ output: Wrapped?) {
      self.output = output
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Wrapped, S.Failure == Never {
      if let output {
        subscriber.receive(subscription: SingleValueSubscription("Optional", output, downstream: subscriber))
      } else {
        subscriber.receive(subscription: Subscriptions.empty)
        subscriber.receive(completion: .finished)
      }
    }
  }
}

extension Optional.Publisher: Equatable where Wrapped: Equatable {}

extension Optional.Publisher: Sendable where Wrapped: Sendable {}
