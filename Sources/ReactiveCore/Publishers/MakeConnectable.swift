extension Publishers {
  /// Waits to be connected before it subscribes upstream.
  public struct MakeConnectable<Upstream: Publisher>: ConnectablePublisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    @usableFromInline let shared: Multicast<Upstream, PassthroughSubject<Output, Failure>>

    /// Makes a publisher connectable.
    @inlinable
    public init(upstream: Upstream) {
      shared = upstream.multicast(subject: PassthroughSubject())
    }

    @inlinable
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      shared.subscribe(subscriber)
    }

    public func connect() -> any Cancellable {
      shared.connect()
    }
  }
}

extension Publisher where Failure == Never {
  /// Lets this publisher wait until it is connected, so that all subscribers can be in place first.
  ///
  /// It is subscribed to once for all of them. Copies of the publisher returned share the connection.
  @inlinable
  public func makeConnectable() -> Publishers.MakeConnectable<Self> {
    Publishers.MakeConnectable(upstream: self)
  }
}
