import PortableCombine

extension Publishers {
  /// How long values are kept for later subscribers.
  public enum ReplayScope: Sendable {
    /// As long as the publisher exists. Upstream is subscribed to once; whoever comes after its completion
    /// gets the kept values, then the completion.
    case forever
    /// Until the last subscriber has left or upstream has completed. Who comes then starts anew, with a new
    /// subscription to upstream.
    case whileConnected
  }

  /// Lets many subscribers share one subscription to a publisher, and replays its latest values to those
  /// who come later.
  public final class ShareReplay<Upstream: Publisher>: Publisher, Equatable {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// Where the values come from.
    public let upstream: Upstream
    /// How many values are replayed.
    public let bufferSize: Int
    /// How long they are kept.
    public let scope: ReplayScope

    private let lock = Lock()
    private var connection: ReplayConnection<Output, Failure>?  // guarded by the lock

    /// Shares a publisher.
    ///
    /// - Parameters:
    ///   - upstream: Where the values come from.
    ///   - bufferSize: How many values are replayed, 0 or more.
    ///   - scope: How long they are kept.
    public init(upstream: Upstream, bufferSize: Int, scope: ReplayScope) {
      self.upstream = upstream
      self.bufferSize = bufferSize
      self.scope = scope
    }

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
      if connection === candidate, !connection.isOver {
        upstream.subscribe(ReplayFeed(connection))
      }
    }

    /// Whether both are the same object.
    public static func == (lhs: ShareReplay, rhs: ShareReplay) -> Bool {
      lhs === rhs
    }
  }
}

// The lock guards what changes here; what changes in a connection is guarded by a lock of its own.
extension Publishers.ShareReplay: @unchecked Sendable where Upstream: Sendable, Upstream.Output: Sendable {}

/// One subscription to upstream, and those who share it.
private final class ReplayConnection<Output, Failure: Error> {
  let subject: ReplaySubject<Output, Failure>
  private let scope: Publishers.ReplayScope

  private let lock = Lock()
  // Guarded by the lock.
  private var subscribers = 0
  private var hasEnded = false

  init(bufferSize: Int, scope: Publishers.ReplayScope) {
    subject = ReplaySubject(bufferSize: bufferSize)
    self.scope = scope
  }

  /// Whether nobody may join any more.
  var isOver: Bool { lock.withLock { hasEnded } }

  /// Counts a subscriber in, unless it is too late.
  func enter() -> Bool {
    lock.withLock {
      if !hasEnded { subscribers += 1 }
      return !hasEnded
    }
  }

  /// Counts a subscriber out.
  func leave() {
    let isAbandoned = lock.withLock {
      subscribers -= 1
      guard scope == .whileConnected, subscribers == 0 else { return false }
      hasEnded = true
      return true
    }
    if isAbandoned { subject.close() }
  }

  func complete(_ completion: Subscribers.Completion<Failure>) {
    lock.withLock {
      if scope == .whileConnected { hasEnded = true }
    }
    subject.send(completion: completion)
  }
}

/// What upstream sees. Does not keep the connection: that is for the publisher and the subscribers to do.
private final class ReplayFeed<Input, Failure: Error>: Subscriber {
  private weak var connection: ReplayConnection<Input, Failure>?

  init(_ connection: ReplayConnection<Input, Failure>) {
    self.connection = connection
  }

  func receive(subscription: any Subscription) {
    if let connection {
      connection.subject.send(subscription: subscription)
    } else {
      subscription.cancel()
    }
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    connection?.subject.send(input)
    return .none
  }

  func receive(completion: Subscribers.Completion<Failure>) {
    connection?.complete(completion)
  }
}

extension Publisher {
  /// Lets many subscribers share one subscription to this publisher, and replays its latest values to those
  /// who come later.
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
  public func share(
    replay count: Int, scope: Publishers.ReplayScope = .whileConnected
  ) -> Publishers.ShareReplay<Self> {
    Publishers.ShareReplay(upstream: self, bufferSize: count, scope: scope)
  }
}
