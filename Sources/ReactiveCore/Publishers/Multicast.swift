extension Publishers {
  /// Delivers one stream to many subscribers by way of a subject, once connected.
  public final class Multicast<Upstream: Publisher, SubjectType: Subject>: ConnectablePublisher
  where Upstream.Output == SubjectType.Output, Upstream.Failure == SubjectType.Failure {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// Makes the subject, when it is first needed.
    public let createSubject: () -> SubjectType

    @usableFromInline let lock = Lock()
    @usableFromInline @exclusivity(unchecked) var subject: SubjectType?  // guarded by the lock

    /// Shares the stream of a publisher through a subject.
    @inlinable
    public init(upstream: Upstream, createSubject: @escaping () -> SubjectType) {
      self.upstream = upstream
      self.createSubject = createSubject
    }

    @inlinable
    func existingSubject() -> SubjectType? {
      lock.withLock { unsafe self.subject }
    }

    @inlinable var sharedSubject: SubjectType {
      if let subject = existingSubject() { return subject }
      // Made outside the lock; if two threads make one, the first stays.
      let candidate = createSubject()
      var subject = candidate
      lock.withLock {
        if let existing = unsafe self.subject {
          subject = existing
        } else {
          unsafe self.subject = candidate
        }
      }
      return subject
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      sharedSubject.subscribe(MulticastSubscriber(downstream: subscriber))
    }

    @inlinable
    public func connect() -> any Cancellable { upstream.subscribe(sharedSubject) }
  }

  /// Waits to be connected before it subscribes upstream.
  public struct MakeConnectable<Upstream: Publisher>: ConnectablePublisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    @usableFromInline let shared: Multicast<Upstream, PassthroughSubject<Output, Failure>>

    /// Makes a publisher connectable.
    @inlinable
    public init(upstream: Upstream) { shared = upstream.multicast(subject: PassthroughSubject()) }

    @inlinable
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      shared.subscribe(subscriber)
    }

    public func connect() -> any Cancellable { shared.connect() }
  }
}

/// Passes on what the subject sends; what downstream asks for on receiving a value is requested from the subject.
@usableFromInline
final class MulticastSubscriber<Input, Failure, Downstream: Subscriber>: Subscriber, OperatorPart
where Downstream.Input == Input, Downstream.Failure == Failure {
  @usableFromInline let downstream: Downstream
  @usableFromInline let link: UpstreamLink<Downstream>

  @inlinable
  init(downstream: Downstream) {
    self.downstream = downstream
    link = UpstreamLink("Multicast", downstream: downstream, isReflecting: false, acceptsNone: true)
  }

  @inlinable
  func receive(subscription: any Subscription) {
    if link.connect(subscription) { downstream.receive(subscription: link) }
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    guard link.isOpen else { return .none }
    let more = downstream.receive(input)
    if more != .none { link.request(more) }
    return .none
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    if link.complete() { downstream.receive(completion: completion) }
  }

  @usableFromInline var description: String { "Multicast" }
}

extension Publisher {
  /// Delivers one stream to many subscribers by way of a subject, which is made when it is first needed.
  ///
  /// Nothing is delivered before ``ConnectablePublisher/connect()`` is called.
  @inlinable
  public func multicast<S: Subject>(_ createSubject: @escaping () -> S) -> Publishers.Multicast<Self, S>
  where S.Output == Output, S.Failure == Failure {
    Publishers.Multicast(upstream: self, createSubject: createSubject)
  }

  /// Delivers one stream to many subscribers by way of a subject.
  ///
  /// Nothing is delivered before ``ConnectablePublisher/connect()`` is called.
  @inlinable
  public func multicast<S: Subject>(subject: S) -> Publishers.Multicast<Self, S>
  where S.Output == Output, S.Failure == Failure {
    multicast { subject }
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
