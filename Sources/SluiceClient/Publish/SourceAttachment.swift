import ReactiveCore

/// A publisher that feeds a publication: subscribed to when the topic is connected, cancelled when it isn't, and so on.
///
/// ```
///   CONNECTED ──► connected(true)  ──► a new SourceSubscriber ──► upstream.subscribe
///   DISCONNECTED ► connected(false) ──► cancel() of that one
/// ```
// @unchecked: `lock` guards what changes. The publisher is only used to subscribe to it.
final class SourceAttachment: Cancellable, @unchecked Sendable {
  private let publication: Publication
  /// Whether upstream is subscribed to again when the topic starts over.
  private let isRepeating: Bool
  private let lock = Guard()
  /// Subscribes to upstream; nil when that won't happen again.
  private var subscribe: ((SourceSubscriber) -> Void)?
  private var current: SourceSubscriber?

  init(_ publication: Publication, isRepeating: Bool, subscribe: @escaping (SourceSubscriber) -> Void) {
    self.publication = publication
    self.isRepeating = isRepeating
    self.subscribe = subscribe
  }

  /// Once more is nothing new.
  func connected(_ isConnected: Bool) {
    if isConnected { start() } else { stop(forGood: false) }
  }

  /// Upstream is cancelled, and not subscribed to again. From any thread.
  func cancel() {
    publication.remove(self)
    stop(forGood: true)
  }

  private func start() {
    // Subscribing may take long and call anybody, so it isn't done under the lock: what comes meanwhile finds the subscriber.
    let new: (SourceSubscriber, (SourceSubscriber) -> Void)? = lock.locked {
      guard let subscribe, current == nil else { return nil }
      let subscriber = SourceSubscriber(self, publication)
      current = subscriber
      return (subscriber, subscribe)
    }
    if let (subscriber, subscribe) = new { subscribe(subscriber) }
  }

  private func stop(forGood: Bool) {
    let (old, subscribe) = lock.locked {
      (exchange(&current, for: nil), forGood ? exchange(&self.subscribe, for: nil) : nil)
    }
    old?.cancel()
    _ = subscribe
  }

  /// Upstream has ended, and so does the topic, unless that subscriber isn't heard any more.
  func ended(_ subscriber: SourceSubscriber, _ completion: Subscribers.Completion<ClientError>) {
    let isCurrent = lock.locked { current === subscriber }
    guard isCurrent else { return }
    if isRepeating { publication.completeRun(completion) } else { publication.complete(completion, nil) }
  }
}
