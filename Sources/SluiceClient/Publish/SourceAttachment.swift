import ReactiveCore

/// A publication's source: a publisher that is subscribed to each time the topic becomes connected, and cancelled when it is disconnected.
///
/// ```
///   CONNECTED ──► connected(true)  ──► a new SourceSubscriber ──► upstream.subscribe
///   DISCONNECTED ► connected(false) ──► cancel() of that one
/// ```
// @unchecked: `lock` guards mutable state. The publisher is only used to subscribe to it.
final class SourceAttachment: Cancellable, @unchecked Sendable {
  private let publication: Publication
  /// Whether upstream is subscribed to again when the topic starts over.
  private let isRepeating: Bool
  private let lock = Lock()
  /// Subscribes to upstream; nil after the source was cancelled.
  private var subscribe: ((SourceSubscriber) -> Void)?
  private var current: SourceSubscriber?

  init(_ publication: Publication, isRepeating: Bool, subscribe: @escaping (SourceSubscriber) -> Void) {
    self.publication = publication
    self.isRepeating = isRepeating
    self.subscribe = subscribe
  }

  /// Subscribes to upstream or cancels it. A repeated state has no effect.
  func connected(_ isConnected: Bool) {
    if isConnected { start() } else { stop(forGood: false) }
  }

  /// Cancels upstream for good. From any thread.
  func cancel() {
    publication.remove(self)
    stop(forGood: true)
  }

  private func start() {
    // Subscribing may take long and run the program's code, so it happens without the lock; concurrent calls find the subscriber.
    let new: (SourceSubscriber, (SourceSubscriber) -> Void)? = lock.withLock {
      guard let subscribe, current == nil else { return nil }
      let subscriber = SourceSubscriber(self, publication)
      current = subscriber
      return (subscriber, subscribe)
    }
    if let (subscriber, subscribe) = new { subscribe(subscriber) }
  }

  private func stop(forGood: Bool) {
    let (old, subscribe) = lock.withLock {
      (current.take(), forGood ? self.subscribe.take() : nil)
    }
    old?.cancel()
    _ = subscribe
  }

  /// Handles the end of upstream, which ends the topic unless another subscriber has replaced this one.
  func ended(_ subscriber: SourceSubscriber, _ completion: Subscribers.Completion<ClientError>) {
    let isCurrent = lock.withLock { current === subscriber }
    guard isCurrent else { return }
    if isRepeating { publication.completeRun(completion) } else { publication.complete(completion, nil) }
  }
}

/// One subscription to a publication's source. The publication requests the broker's grants from it.
// @unchecked: `lock` guards mutable state.
final class SourceSubscriber: Subscriber, Subscription, @unchecked Sendable {
  typealias Input = Message
  typealias Failure = ClientError

  private let publication: Publication
  private let lock = Lock()
  /// Nil after its end.
  private var attachment: SourceAttachment?
  private var upstream: (any Subscription)?
  /// Requested values that haven't arrived.
  private var owed = 0

  init(_ attachment: SourceAttachment, _ publication: Publication) {
    self.attachment = attachment
    self.publication = publication
  }

  // MARK: Upstream's side, on any thread

  func receive(subscription: any Subscription) {
    let isAccepted = lock.withLock {
      guard attachment != nil, upstream == nil else { return false }
      upstream = subscription
      return true
    }
    guard isAccepted else { return subscription.cancel() }
    publication.attach(self)
    // A cancellation before the attachment has detached nothing.
    if isOver { publication.detach(self, owing: 0) }
  }

  func receive(_ message: Message) -> Subscribers.Demand {
    let isOwed: Bool? = lock.withLock {
      guard attachment != nil else { return nil }
      guard owed > 0 else { return false }
      owed -= 1
      return true
    }
    if let isOwed { publication.send(message, isOwed: isOwed) }
    return .none
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    guard let end = end() else { return }
    publication.detach(self, owing: end.owed)
    end.attachment.ended(self, completion)
  }

  // MARK: The publication's side

  func request(_ demand: Subscribers.Demand) {
    let upstream: (any Subscription)? = lock.withLock {
      guard attachment != nil else { return nil }
      owed += demand.max ?? 0
      return self.upstream
    }
    upstream?.request(demand)
  }

  func cancel() {
    guard let end = end() else { return }
    publication.detach(self, owing: end.owed)
    end.upstream?.cancel()
  }

  private var isOver: Bool { lock.withLock { attachment == nil } }

  /// Ends it, once. Returns what it held, which the caller releases without the lock.
  private func end() -> (attachment: SourceAttachment, upstream: (any Subscription)?, owed: Int)? {
    lock.withLock {
      guard let attachment = attachment.take() else { return nil }
      return (attachment, upstream.take(), exchange(&owed, with: 0))
    }
  }
}
