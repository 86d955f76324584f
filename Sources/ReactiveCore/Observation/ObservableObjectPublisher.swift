/// Tells its subscribers that an object is about to change.
///
/// The first request of a subscriber stands for unlimited demand. May be used from any thread.
public final class ObservableObjectPublisher: Publisher, Sendable {
  public typealias Output = Void
  public typealias Failure = Never

  private let subject = PassthroughSubject<Void, Never>()

  /// A publisher without subscribers.
  public init() {}

  public func receive<S: Subscriber>(subscriber: S) where S.Input == Void, S.Failure == Never {
    subject.receive(subscriber: ObjectWillChangeSubscriber(downstream: subscriber))
  }

  /// Tells the subscribers.
  public func send() {
    subject.send()
  }
}

/// Passes the news on; what downstream asks for makes no difference.
private struct ObjectWillChangeSubscriber<Downstream: Subscriber>: Subscriber
where Downstream.Input == Void, Downstream.Failure == Never {
  typealias Input = Void
  typealias Failure = Never

  let downstream: Downstream
  let combineIdentifier = CombineIdentifier()

  init(downstream: Downstream) {
    self.downstream = downstream
  }

  func receive(subscription: any Subscription) {
    downstream.receive(subscription: ObjectWillChangeSubscription(subscription, downstream: downstream))
  }

  func receive(_ input: Void) -> Subscribers.Demand {
    _ = downstream.receive(input)
    return .none
  }

  func receive(completion: Subscribers.Completion<Never>) {
    downstream.receive(completion: completion)
  }
}

private final class ObjectWillChangeSubscription<Downstream>: Subscription, OperatorPart {
  private let upstream: any Subscription
  private let lock = Lock()
  private var downstream: Downstream?  // guarded by the lock; for the mirror alone

  init(_ upstream: any Subscription, downstream: Downstream) {
    self.upstream = upstream
    self.downstream = downstream
  }

  func request(_ demand: Subscribers.Demand) {
    upstream.request(.unlimited)
  }

  func cancel() {
    upstream.cancel()
    var released: Downstream?
    lock.withLock { swap(&released, &downstream) }
  }

  var description: String { "ObservableObjectPublisher" }

  var customMirror: Mirror {
    let downstream = lock.withLock { self.downstream }
    return Mirror(self, children: [("downstream", downstream as Any)])
  }
}
