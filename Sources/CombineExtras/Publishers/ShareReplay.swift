import PortableCombine

extension Publishers {
  /// How long values are kept for later subscribers.
  public enum ReplayScope: Sendable {
    /// As long as the publisher exists. Upstream is subscribed to once; a subscriber that comes after its
    /// completion gets the kept values, then the completion.
    case forever
    /// Until the last subscriber has cancelled or upstream has completed. The next subscriber causes a new
    /// subscription to upstream.
    case whileConnected
  }

  /// Lets many subscribers share one subscription to a publisher, and replays its latest values to
  /// later ones.
  public final class ShareReplay<Upstream: Publisher>: Publisher, Equatable {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// How many values are replayed.
    public let bufferSize: Int
    /// How long they are kept.
    public let scope: ReplayScope

    @usableFromInline let lock = Lock()
    @usableFromInline var connection: ReplayConnection<Output, Failure>?  // guarded by the lock

    /// Shares a publisher.
    ///
    /// - Parameters:
    ///   - upstream: The upstream publisher.
    ///   - bufferSize: How many values are replayed, 0 or more.
    ///   - scope: How long they are kept.
    @inlinable
    public init(upstream: Upstream, bufferSize: Int, scope: ReplayScope) {
      self.upstream = upstream
      self.bufferSize = bufferSize
      self.scope = scope
    }

    @inlinable
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let candidate = ReplayConnection<Output, Failure>(bufferSize: bufferSize, scope: scope)
      var former: ReplayConnection<Output, Failure>?
      let connection = lock.withLock {
        if let connection = self.connection, connection.enter() { return connection }
        _ = candidate.enter()
        former = self.connection
        self.connection = candidate
        return candidate
      }
      withExtendedLifetime(former) {}
      connection.subject.attach(AnySubscriber(subscriber)) { connection.leave() }
      if connection === candidate, !connection.isClosed {
        upstream.subscribe(ReplayUpstreamSubscriber(connection))
      }
    }

    /// Whether both are the same object.
    @inlinable
    public static func == (lhs: ShareReplay, rhs: ShareReplay) -> Bool { lhs === rhs }
  }
}

// The lock guards what changes here; what changes in a connection is guarded by a lock of its own.
extension Publishers.ShareReplay: @unchecked Sendable where Upstream: Sendable, Upstream.Output: Sendable {}

/// One subscription to upstream, and the subscribers that share it.
@usableFromInline
final class ReplayConnection<Output, Failure: Error> {
  @usableFromInline let subject: ReplaySubject<Output, Failure>
  @usableFromInline let scope: Publishers.ReplayScope

  @usableFromInline let lock = Lock()
  // Guarded by the lock.
  @usableFromInline var subscribers = 0
  @usableFromInline var hasEnded = false

  @inlinable
  init(bufferSize: Int, scope: Publishers.ReplayScope) {
    subject = ReplaySubject(bufferSize: bufferSize)
    self.scope = scope
  }

  /// Whether it is closed to new subscribers.
  @inlinable var isClosed: Bool { lock.withLock { hasEnded } }

  /// Counts a subscriber in, unless it is too late.
  @inlinable
  func enter() -> Bool {
    lock.withLock {
      if !hasEnded { subscribers += 1 }
      return !hasEnded
    }
  }

  /// Counts a subscriber out.
  @inlinable
  func leave() {
    let isAbandoned = lock.withLock {
      subscribers -= 1
      guard scope == .whileConnected, subscribers == 0 else { return false }
      hasEnded = true
      return true
    }
    if isAbandoned { subject.close() }
  }

  @inlinable
  func complete(_ completion: Subscribers.Completion<Failure>) {
    lock.withLock {
      if scope == .whileConnected { hasEnded = true }
    }
    subject.send(completion: completion)
  }
}

/// The subscriber of upstream. The publisher and the subscribers keep the connection; this doesn't.
@usableFromInline
final class ReplayUpstreamSubscriber<Input, Failure: Error>: Subscriber {
  @usableFromInline weak var connection: ReplayConnection<Input, Failure>?

  @inlinable
  init(_ connection: ReplayConnection<Input, Failure>) { self.connection = connection }

  @inlinable
  func receive(subscription: any Subscription) {
    if let connection {
      connection.subject.send(subscription: subscription)
    } else {
      subscription.cancel()
    }
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    connection?.subject.send(input)
    return .none
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) { connection?.complete(completion) }
}

extension Publisher {
  /// Lets many subscribers share one subscription to this publisher, and replays its latest values to
  /// later ones.
  ///
  /// Upstream is subscribed to, and asked for everything, with the first subscriber. How values reach
  /// subscribers is described with ``ReplaySubject``.
  ///
  ///     let settings = loadSettings().share(replay: 1, scope: .forever)
  ///     let first = settings.sink { print("loaded", $0) }
  ///     let second = settings.sink { print("replayed", $0) }  // nothing is loaded again
  ///
  /// - Parameters:
  ///   - count: How many values are replayed, 0 or more.
  ///   - scope: How long they are kept. With `whileConnected`, upstream is cancelled when the last
  ///     subscriber has cancelled; with `forever`, when this publisher and all its subscriptions are gone.
  @inlinable
  public func share(
    replay count: Int, scope: Publishers.ReplayScope = .whileConnected
  ) -> Publishers.ShareReplay<Self> {
    Publishers.ShareReplay(upstream: self, bufferSize: count, scope: scope)
  }
}
