extension Publishers {
  /// Connects a connectable publisher for its first subscriber and disconnects it when the last one has cancelled.
  public class Autoconnect<Upstream: ConnectablePublisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The publisher that is connected.
    public final let upstream: Upstream

    @usableFromInline final let lock = Lock()
    // Guarded by the lock.
    @usableFromInline @exclusivity(unchecked) final var subscriberCount = 0
    @usableFromInline @exclusivity(unchecked) final var connection: (any Cancellable)?
    @usableFromInline @exclusivity(unchecked) final var generation = 0  // counts connections

    /// Connects a publisher as needed.
    @inlinable
    public init(upstream: Upstream) { self.upstream = upstream }

    @inlinable
    public final func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      var connecting: Int?
      lock.withLock {
        unsafe subscriberCount += 1
        if unsafe subscriberCount == 1 {
          unsafe generation += 1
          connecting = unsafe generation
        }
      }
      upstream.subscribe(AutoconnectSubscriber(parent: self, downstream: subscriber) { [self] in leave() })
      if let connecting { connect(connecting) }
    }

    @inlinable
    final func connect(_ generation: Int) {
      let connection = upstream.connect()
      // All subscribers may have cancelled meanwhile, and later ones may have made a connection of their own.
      let isWanted = lock.withLock {
        guard unsafe subscriberCount > 0, unsafe self.generation == generation else { return false }
        unsafe self.connection = connection
        return true
      }
      if !isWanted { connection.cancel() }
    }

    @usableFromInline
    final func leave() {
      var connection: (any Cancellable)?
      lock.withLock {
        unsafe subscriberCount -= 1
        if unsafe subscriberCount == 0 { unsafe swap(&connection, &self.connection) }
      }
      connection?.cancel()
    }
  }

  /// Lets many subscribers share one subscription to a publisher.
  public final class Share<Upstream: Publisher>: Publisher, Equatable {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream

    @usableFromInline let shared: Autoconnect<Multicast<Upstream, PassthroughSubject<Output, Failure>>>

    /// Shares a publisher.
    @inlinable
    public init(upstream: Upstream) {
      self.upstream = upstream
      shared = upstream.multicast(subject: PassthroughSubject()).autoconnect()
    }

    @inlinable
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      shared.subscribe(subscriber)
    }

    /// Whether both are the same object.
    public static func == (lhs: Share, rhs: Share) -> Bool { lhs === rhs }
  }
}

/// Passes everything on, and calls `leave` on cancellation.
@usableFromInline
struct AutoconnectSubscriber<Input, Failure, Downstream: Subscriber>: PassThroughSubscriber, OperatorPart
where Downstream.Input == Input, Downstream.Failure == Failure {
  @usableFromInline let parent: AnyObject  // for the mirror
  @usableFromInline let downstream: Downstream
  @usableFromInline let leave: () -> Void
  @usableFromInline let combineIdentifier = CombineIdentifier()

  @inlinable
  init(parent: AnyObject, downstream: Downstream, leave: @escaping () -> Void) {
    self.parent = parent
    self.downstream = downstream
    self.leave = leave
  }

  @inlinable
  func receive(subscription: any Subscription) {
    downstream.receive(subscription: AutoconnectSubscription(subscription, leave: leave))
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand { downstream.receive(input) }

  @usableFromInline var description: String { "Autoconnect" }

  @usableFromInline var customMirror: Mirror { return mirror(("parent", parent), ("downstream", downstream)) }
}

/// The upstream subscription, with a function that is called on cancellation.
@usableFromInline
final class AutoconnectSubscription: Subscription, OperatorPart {
  @usableFromInline let upstream: any Subscription
  @usableFromInline let lock = Lock()
  @usableFromInline @exclusivity(unchecked) var leave: (() -> Void)?  // guarded by the lock

  @inlinable
  init(_ upstream: any Subscription, leave: @escaping () -> Void) {
    self.upstream = upstream
    unsafe self.leave = leave
  }

  @inlinable func request(_ demand: Subscribers.Demand) { upstream.request(demand) }

  @inlinable
  func cancel() {
    var leave: (() -> Void)?
    lock.withLock { unsafe swap(&leave, &self.leave) }
    leave?()
    upstream.cancel()
  }

  @usableFromInline var combineIdentifier: CombineIdentifier { upstream.combineIdentifier }

  @usableFromInline var description: String { String(describing: upstream) }

  @usableFromInline var customMirror: Mirror { Mirror(reflecting: upstream) }
}

extension ConnectablePublisher {
  /// Connects for the first subscriber and disconnects when the last one has cancelled.
  ///
  /// Unlike Combine, it connects once even if a second subscriber comes from within the subscription of the first.
  @inlinable
  public func autoconnect() -> Publishers.Autoconnect<Self> { Publishers.Autoconnect(upstream: self) }
}

// The subject and `Autoconnect` have the mutable state, each protected by its own lock.
extension Publishers.Share: @unchecked Sendable where Upstream: Sendable, Upstream.Output: Sendable {}

extension Publisher {
  /// Lets many subscribers share one subscription to this publisher.
  ///
  /// Upstream is subscribed to with the first subscriber and cancelled when the last has cancelled. A later subscriber gets the
  /// values that follow; one that subscribes after the completion gets only the completion.
  @inlinable
  public func share() -> Publishers.Share<Self> { Publishers.Share(upstream: self) }
}
