import Synchronization

extension Publishers {
  /// Drops values until another publisher delivers one.
  public struct DropUntilOutput<Upstream: Publisher, Other: Publisher>: Publisher
  where Upstream.Failure == Other.Failure {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// The publisher whose first value opens the way.
    public let other: Other

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, other: Other) {
      self.upstream = upstream
      self.other = other
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let inner = DropUntilSubscriber<Output, Failure, S>(downstream: subscriber)
      subscriber.receive(subscription: inner.link)
      other.subscribe(TriggerSubscriber(parent: inner) { inner.triggerCompleted($0) })
      upstream.receive(subscriber: inner)
    }
  }
}

extension Publishers.DropUntilOutput: Equatable where Upstream: Equatable, Other: Equatable {}
extension Publishers.DropUntilOutput: Sendable where Upstream: Sendable, Other: Sendable {}

/// Known downstream before upstream, and to the other publisher before upstream as well.
@usableFromInline
final class DropUntilSubscriber<Input, Failure, Downstream: Subscriber>: Subscriber, Triggered
where Downstream.Input == Input, Downstream.Failure == Failure {
  @usableFromInline let downstream: Downstream
  @usableFromInline let link: SuccessionLink<Downstream>
  @usableFromInline let isTriggered = Atomic<Bool>(false)

  @usableFromInline
  init(downstream: Downstream) {
    self.downstream = downstream
    link = SuccessionLink("DropUntilOutput", acceptsNone: true)
  }

  @usableFromInline
  func receive(subscription: any Subscription) { _ = link.connect(subscription) }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    guard isTriggered.load(ordering: .acquiring), link.isOpen(0) else {
      link.ignoreIfEarly(.valueBeforeSubscription)
      return .none
    }
    return downstream.receive(input)
  }

  @usableFromInline
  func receive(completion: Subscribers.Completion<Failure>) {
    if link.ignoreIfEarly(.completionBeforeSubscription) { return }
    let (wasOpen, _, other) = link.end()
    other?.cancel()
    if wasOpen { downstream.receive(completion: completion) }
  }

  @usableFromInline
  func trigger() {
    isTriggered.store(true, ordering: .releasing)
    link.takeOther()?.cancel()
  }

  /// The other publisher has ended. If that was without a value, nothing will ever pass.
  @usableFromInline
  func triggerCompleted(_ completion: Subscribers.Completion<Failure>) {
    if isTriggered.load(ordering: .acquiring) { return }
    let (wasOpen, upstream, _) = link.end()
    upstream?.cancel()
    if wasOpen { downstream.receive(completion: completion) }
  }

  @usableFromInline var description: String { "DropUntilOutput" }
}

/// An operator's subscriber that does something when another publisher sends its first value.
@usableFromInline
protocol Triggered: AnyObject, CustomCombineIdentifierConvertible, OperatorPart {
  associatedtype Downstream

  /// Keeps the other publisher's subscription beside that of upstream.
  var link: SuccessionLink<Downstream> { get }

  /// The other publisher has sent its first value.
  func trigger()
}

/// The subscriber of the other publisher. It shows itself as the operator.
@usableFromInline
struct TriggerSubscriber<Input, Failure: Error, Parent: Triggered>: Subscriber, OperatorPart {
  @usableFromInline let parent: Parent
  private let complete: (Subscribers.Completion<Failure>) -> Void

  /// - Parameter complete: Called when the other publisher has ended.
  @usableFromInline
  init(parent: Parent, complete: @escaping (Subscribers.Completion<Failure>) -> Void) {
    self.parent = parent
    self.complete = complete
  }

  @usableFromInline
  func receive(subscription: any Subscription) {
    if parent.link.connectOther(subscription) { subscription.request(.max(1)) }
  }

  @usableFromInline
  func receive(_ input: Input) -> Subscribers.Demand {
    if !parent.link.ignoreIfOtherIsEarly(.valueBeforeSubscription) { parent.trigger() }
    return .none
  }

  @usableFromInline
  func receive(completion: Subscribers.Completion<Failure>) {
    if !parent.link.ignoreIfOtherIsEarly(.completionBeforeSubscription) { complete(completion) }
  }

  @usableFromInline var combineIdentifier: CombineIdentifier { parent.combineIdentifier }

  @usableFromInline var description: String { parent.description }

  @usableFromInline var customMirror: Mirror { parent.customMirror }
}

extension Publisher {
  /// Drops values until another publisher delivers one, which is then cancelled, unlike in Combine.
  ///
  /// The other publisher is subscribed to first and asked for one value. Requests are passed to this
  /// publisher at once; values dropped count as delivered. If the other publisher ends without a value, the
  /// stream ends likewise and this publisher is cancelled.
  @inlinable
  public func drop<P: Publisher>(
    untilOutputFrom publisher: P
  ) -> Publishers.DropUntilOutput<Self, P> where P.Failure == Failure {
    Publishers.DropUntilOutput(upstream: self, other: publisher)
  }
}
