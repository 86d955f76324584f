import Synchronization

/// A subject that keeps the latest value and gives it to each new subscriber.
///
/// A subscriber that has asked for values gets the current one at once, then each that follows. One that has asked for fewer
/// than were sent misses those in between and gets the latest when it asks again. The functions may be called from any
/// thread. Each subscriber gets its values one at a time, in the order in which they were sent. A value sent while another
/// is being delivered is delivered right after it by the caller that delivers, so `send` may return before that has happened;
/// ``value`` has changed by then in any case. Unlike in Combine, a subscriber that sends to its own subject does not make the stack
/// grow.
public final class CurrentValueSubject<Output, Failure: Error>: Subject {
  @usableFromInline typealias Conduit = CurrentValueConduit<Output, Failure>

  @usableFromInline
  enum Signal {
    case value(Output, version: UInt64)
    case completion(Subscribers.Completion<Failure>)
  }

  @usableFromInline let subscribers = SubscriberList<Conduit, Signal>()

  // Guarded by the list's lock.
  @usableFromInline @exclusivity(unchecked) var current: Output
  @usableFromInline @exclusivity(unchecked) var version: UInt64 = 0
  @usableFromInline @exclusivity(unchecked) var isClosed = false
  private var completion: Subscribers.Completion<Failure>?
  private var sources = SubjectSources()

  /// A subject with a first value.
  @inlinable
  public init(_ value: Output) { unsafe current = value }

  deinit {
    for source in sources.all {
      source.cancel()
    }
  }

  /// The latest value. Setting it is sending it; after completion the value is kept and sent to no subscriber.
  @inlinable
  public var value: Output {
    get { subscribers.lock.withLock { unsafe current } }
    set { put(newValue, evenIfClosed: true) }
  }

  public func send(subscription: any Subscription) {
    let released = subscribers.lock.withLock { sources.append(subscription) }
    withExtendedLifetime(released) {}
    subscription.request(.unlimited)
  }

  @inlinable
  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    attach(AnySubscriber(subscriber))
  }

  @usableFromInline
  func attach(_ subscriber: AnySubscriber<Output, Failure>) {
    let conduit = Conduit(subject: self, downstream: subscriber)
    let completion: Subscribers.Completion<Failure>? = subscribers.lock.withLock {
      if unsafe !isClosed { subscribers.lockedAdd(conduit) }
      return self.completion
    }
    if let completion {
      subscriber.receive(subscription: Subscriptions.empty)
      subscriber.receive(completion: completion)
    } else {
      subscriber.receive(subscription: conduit)
      conduit.open()
    }
  }

  /// Sends a value. After completion this has no effect.
  @inlinable
  public func send(_ value: Output) { put(value, evenIfClosed: false) }

  @inlinable @inline(__always)
  func put(_ value: Output, evenIfClosed: Bool) {
    // The old value is released outside the lock: its deinit may run anything.
    var value = value
    let newValue = value
    var version: UInt64 = 0
    let isSender = subscribers.lock.withLock {
      if unsafe isClosed {
        if evenIfClosed { unsafe swap(&value, &current) }
        return false
      }
      unsafe self.version &+= 1
      version = unsafe self.version
      unsafe swap(&value, &current)
      return subscribers.lockedBeginSending(orQueue: .value(newValue, version: version))
    }
    if isSender {
      subscribers.forEachMember { $0.offer(newValue, version: version) }
      subscribers.endSending { deliver($0) }
    }
  }

  public func send(completion: Subscribers.Completion<Failure>) {
    let isSender = subscribers.lock.withLock {
      if unsafe isClosed { return false }
      unsafe isClosed = true
      self.completion = completion
      return subscribers.lockedBeginSending(orQueue: .completion(completion))
    }
    if isSender {
      deliver(.completion(completion))
      subscribers.endSending { deliver($0) }
    }
  }

  @usableFromInline
  func deliver(_ signal: Signal) {
    switch signal {
    case .value(let value, let version):
      subscribers.forEachMember { $0.offer(value, version: version) }
    case .completion(let completion):
      subscribers.forEachMember { $0.finish(completion) }
      subscribers.removeAll()
      var sources = SubjectSources()
      subscribers.lock.withLock { swap(&sources, &self.sources) }
    }
  }

  /// The latest value and its number.
  func snapshot() -> (value: Output, version: UInt64) {
    subscribers.lock.withLock { unsafe (current, version) }
  }
}

// `SubscriberList` says how the state is guarded. Values cross threads, hence the condition.
extension CurrentValueSubject: @unchecked Sendable where Output: Sendable {}
