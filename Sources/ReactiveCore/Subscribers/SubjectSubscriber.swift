/// Sends the values of a publisher to a subject.
///
/// The subject gets this object as its subscription and so decides what is requested from the publisher.
@usableFromInline
final class SubjectSubscriber<S: Subject>: Subscriber, Subscription, SubscriptionAwaiting, OperatorPart {
  @usableFromInline let lock = Lock()
  @usableFromInline @exclusivity(unchecked) var subject: S?  // guarded by the lock
  @usableFromInline @exclusivity(unchecked) var upstream: (any Subscription)?  // guarded by the lock
  @usableFromInline @exclusivity(unchecked) var isAttached = false  // to upstream; guarded by the lock

  @inlinable init(_ subject: S) { unsafe self.subject = subject }

  @inlinable
  func receive(subscription: any Subscription) {
    var accepted: S?
    lock.withLock {
      if unsafe upstream == nil, unsafe subject != nil {
        unsafe upstream = subscription
        unsafe isAttached = true
        accepted = unsafe subject
      }
    }
    if let accepted {
      accepted.send(subscription: self)
    } else {
      subscription.cancel()
    }
  }

  @inlinable
  func receive(_ input: S.Output) -> Subscribers.Demand {
    let subject = lock.withLock { unsafe isAttached ? self.subject : nil }
    if let subject {
      subject.send(input)
    } else {
      ignoreIfEarly(.valueBeforeSubscription)
    }
    return .none
  }

  @inlinable
  func receive(completion: Subscribers.Completion<S.Failure>) {
    // An early completion is ignored, and the subject still takes a subscription.
    if ignoreIfEarly(.completionBeforeSubscription) { return }
    let (subject, upstream) = end()
    if upstream != nil { subject?.send(completion: completion) }
  }

  @usableFromInline
  var isAwaitingSubscription: Bool {
    lock.withLock { unsafe !isAttached && subject != nil }
  }

  @inlinable
  func request(_ demand: Subscribers.Demand) {
    lock.withLock { unsafe upstream }?.request(demand)
  }

  @inlinable func cancel() { end().upstream?.cancel() }

  /// Ends it and returns what was held, to be released outside the lock.
  @inlinable
  func end() -> (subject: S?, upstream: (any Subscription)?) {
    lock.withLock {
      defer {
        unsafe subject = nil
        unsafe upstream = nil
        unsafe isAttached = false
      }
      return unsafe (subject, upstream)
    }
  }

  @usableFromInline var description: String { "Subject" }

  @usableFromInline var customMirror: Mirror {
    let (subject, upstream) = lock.withLock { unsafe (self.subject, self.upstream) }
    return mirror(
      ("downstreamSubject", subject as Any), ("upstreamSubscription", upstream as Any),
      ("subject", subject as Any))
  }
}

extension SubjectSubscriber: EndingSource {
  var hasEnded: Bool { lock.withLock { unsafe subject == nil } }
}

/// A subscription that knows whether it has ended.
private protocol EndingSource: Subscription {
  var hasEnded: Bool { get }
}

/// The subscriptions that a subject gets its values from, until its deinit cancels them.
///
/// A shared publisher connects its subject again for each first subscriber after the last one has cancelled. So subscriptions that
/// have ended are removed whenever the list has doubled. The owner guards the list with a lock.
struct SubjectSources {
  private(set) var all: [any Subscription] = []
  private var limit = 8  // the count at which ended ones are removed next

  /// Adds one.
  ///
  /// - Returns: The removed subscriptions, to be released outside the lock.
  mutating func append(_ source: any Subscription) -> [any Subscription] {
    all.append(source)
    guard all.count > limit else { return [] }
    var (open, over): ([any Subscription], [any Subscription]) = ([], [])
    for source in all {
      if let ending = source as? any EndingSource, ending.hasEnded {
        over.append(source)
      } else {
        open.append(source)
      }
    }
    all = open
    limit = Swift.max(8, open.count * 2)
    return over
  }
}
