import Synchronization

extension Publishers {
  /// Passes values on until another publisher delivers one.
  public struct PrefixUntilOutput<Upstream: Publisher, Other: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// The publisher whose first value ends the stream.
    public let other: Other

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, other: Other) {
      self.upstream = upstream
      self.other = other
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let inner = PrefixUntilSubscriber<Output, Failure, S>(downstream: subscriber)
      // If the other publisher ends without a value, the stream continues to its own end.
      other.subscribe(TriggerSubscriber(parent: inner) { _ in _ = inner.link.takeOther() })
      upstream.receive(subscriber: inner)
    }
  }
}

extension Publishers.PrefixUntilOutput: Sendable where Upstream: Sendable, Other: Sendable {}

/// Two publishers call downstream: upstream, and the other publisher, which ends the stream. If the end comes while upstream is
/// delivering, upstream's thread delivers the completion, right after the value.
@usableFromInline
final class PrefixUntilSubscriber<Input, Failure, Downstream: Subscriber>: Subscriber, Triggered
where Downstream.Input == Input, Downstream.Failure == Failure {
  @usableFromInline
  enum Mark {
    /// A caller is delivering to downstream.
    @inlinable static var busy: UInt8 { 1 }
    /// The other publisher has ended the stream.
    @inlinable static var ended: UInt8 { 2 }
    /// Downstream has its subscription, or is getting it.
    @inlinable static var attached: UInt8 { 4 }
    /// Downstream has the completion, or is getting it.
    @inlinable static var completed: UInt8 { 8 }
  }

  @usableFromInline let downstream: Downstream
  @usableFromInline let link: SuccessionLink<Downstream>
  @usableFromInline let marks = Atomic<UInt8>(0)

  @usableFromInline
  init(downstream: Downstream) {
    self.downstream = downstream
    link = SuccessionLink("PrefixUntilOutput", acceptsNone: true)
  }

  @usableFromInline
  func receive(subscription: any Subscription) {
    guard link.connect(subscription) else { return }
    let old = marks.bitwiseOr(Mark.busy | Mark.attached, ordering: .acquiringAndReleasing).oldValue
    guard old & Mark.ended == 0 else { return }
    downstream.receive(subscription: link)
    leave()
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    guard link.isOpen(0) else {
      link.ignoreIfEarly(.valueBeforeSubscription)
      return .none
    }
    let old = marks.bitwiseOr(Mark.busy, ordering: .acquiringAndReleasing).oldValue
    guard old & Mark.ended == 0 else { return .none }
    let more = downstream.receive(input)
    // A value delivered from within another leaves the completion to that delivery.
    if old & Mark.busy == 0 { leave() }
    return more
  }

  /// Ends a delivery to downstream; delivers the completion, if the end has come meanwhile.
  @inlinable
  func leave() {
    let old = marks.bitwiseAnd(~Mark.busy, ordering: .acquiringAndReleasing).oldValue
    if old & Mark.ended != 0 { deliverCompletion() }
  }

  @usableFromInline
  func deliverCompletion() {
    if marks.bitwiseOr(Mark.completed, ordering: .acquiringAndReleasing).oldValue & Mark.completed == 0 {
      downstream.receive(completion: .finished)
    }
  }

  @usableFromInline
  func receive(completion: Subscribers.Completion<Failure>) {
    if link.ignoreIfEarly(.completionBeforeSubscription) { return }
    let (wasOpen, _, other) = link.end()
    other?.cancel()
    // Downstream gets no completion before its subscription.
    if wasOpen, marks.load(ordering: .acquiring) & Mark.attached != 0 {
      downstream.receive(completion: completion)
    }
  }

  @usableFromInline
  func trigger() {
    let (wasOpen, upstream, other) = link.end()
    guard wasOpen else { return }
    upstream?.cancel()
    other?.cancel()
    let old = marks.bitwiseOr(Mark.ended, ordering: .acquiringAndReleasing).oldValue
    if old & Mark.attached == 0 { downstream.receive(subscription: link) }
    if old & Mark.busy == 0 { deliverCompletion() }
  }

  @usableFromInline var description: String { "PrefixUntilOutput" }
}

extension Publisher {
  /// Passes values on until another publisher delivers one; then cancels both and finishes.
  ///
  /// The other publisher is subscribed to first and asked for one value. If it ends without a value, values still pass.
  /// When it delivers on one thread while a value is passed on by another, the stream finishes right after that value.
  /// Unlike Combine, this cancels the other publisher once it has delivered, and downstream always gets a subscription
  /// before the finish.
  @inlinable
  public func prefix<P: Publisher>(untilOutputFrom publisher: P) -> Publishers.PrefixUntilOutput<Self, P> {
    Publishers.PrefixUntilOutput(upstream: self, other: publisher)
  }
}
