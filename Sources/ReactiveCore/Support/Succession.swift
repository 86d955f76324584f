/// The next step of an operator after its upstream has completed.
@usableFromInline
enum Succession<Next: Publisher, Failure: Error> {
  /// Ends likewise, or otherwise.
  case end(Subscribers.Completion<Failure>)
  /// Continues with another publisher, to the end of that.
  case next(Next)
}

/// The subscriber of an operator that continues with another publisher when its upstream has completed in a certain
/// way.
///
/// The unmet demand of downstream is requested from the other publisher.
@usableFromInline
final class SuccessionSubscriber<Input, Failure: Error, Next: Publisher, Downstream: Subscriber>: Subscriber,
  OperatorPart
where Next.Output == Input, Downstream.Input == Input {
  /// Decides on a completion, given whether it is the first event.
  @usableFromInline typealias Successor =
    (Subscribers.Completion<Failure>, _ isEmpty: Bool) -> Succession<Next, Downstream.Failure>

  @usableFromInline let downstream: Downstream
  @usableFromInline let link: SuccessionLink<Downstream>
  @usableFromInline @exclusivity(unchecked) var isEmpty = true  // used by one value at a time
  @usableFromInline let waitsForUpstream: Bool
  private let successor: Successor
  private let convert: (Next.Failure) -> Downstream.Failure

  private let lock = Lock()
  private var isDownstreamAttached: Bool  // guarded by the lock: downstream knows its subscription
  private var held: Subscribers.Completion<Downstream.Failure>?  // guarded by the lock: came before that

  /// - Parameters:
  ///   - name: The operator's name in descriptions.
  ///   - waitsForUpstream: Whether downstream gets its subscription when upstream gives one; otherwise `attachDownstream()` is to be
  ///     called.
  ///   - isReflecting: Whether the mirror shows downstream.
  ///   - successor: Decides on the completion of upstream.
  ///   - convert: The error that downstream gets for one of the other publisher.
  @usableFromInline
  init(
    _ name: StaticString, downstream: Downstream, waitsForUpstream: Bool = true, isReflecting: Bool = true,
    successor: @escaping Successor, convert: @escaping (Next.Failure) -> Downstream.Failure
  ) {
    self.downstream = downstream
    self.waitsForUpstream = waitsForUpstream
    self.successor = successor
    self.convert = convert
    isDownstreamAttached = waitsForUpstream
    link = SuccessionLink(name, reflecting: isReflecting ? downstream : nil)
  }

  /// The same, where errors of the other publisher pass as they are.
  @usableFromInline
  convenience init(
    _ name: StaticString, downstream: Downstream, waitsForUpstream: Bool = true, isReflecting: Bool = true,
    successor: @escaping Successor
  ) where Next.Failure == Downstream.Failure {
    self.init(
      name, downstream: downstream, waitsForUpstream: waitsForUpstream, isReflecting: isReflecting,
      successor: successor, convert: { $0 })
  }

  /// Gives downstream its subscription, and the completion, should that have come.
  @usableFromInline
  func attachDownstream() {
    downstream.receive(subscription: link)
    var held: Subscribers.Completion<Downstream.Failure>?
    lock.withLock {
      isDownstreamAttached = true
      swap(&held, &self.held)
    }
    if let held { finish(held) }
  }

  @usableFromInline
  func finish(_ completion: Subscribers.Completion<Downstream.Failure>) {
    let isReady = lock.withLock {
      if !isDownstreamAttached { held = completion }
      return isDownstreamAttached
    }
    if isReady, link.end().wasOpen { downstream.receive(completion: completion) }
  }

  @usableFromInline
  func receive(subscription: any Subscription) {
    if link.connect(subscription, as: 0), waitsForUpstream { downstream.receive(subscription: link) }
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    guard link.isOpen(0) else {
      link.ignoreIfEarly(.valueBeforeSubscription)
      return .none
    }
    unsafe isEmpty = false
    if link.isUnlimited { return downstream.receive(input) }
    link.spend()
    let more = downstream.receive(input)
    return more == .none ? .none : link.grant(more, to: 0)
  }

  @usableFromInline
  func receive(completion: Subscribers.Completion<Failure>) {
    guard link.advance(from: 0) else {
      link.ignoreIfEarly(.completionBeforeSubscription)
      return
    }
    switch unsafe successor(completion, isEmpty) {
    case .end(let completion): finish(completion)
    case .next(let publisher): publisher.subscribe(SuccessorSubscriber(parent: self))
    }
  }

  @usableFromInline
  func receive(completion: Subscribers.Completion<Next.Failure>, ofSuccessor number: Int) {
    guard link.isOpen(number) else {
      link.ignoreIfEarly(.completionBeforeSubscription, from: number)
      return
    }
    finish(completion.mapError(convert))
  }

  @usableFromInline var description: String { link.description }

  @usableFromInline var customMirror: Mirror { link.customMirror }
}

/// The subscriber of the publisher that takes upstream's place.
@usableFromInline
struct SuccessorSubscriber<Input, UpstreamFailure: Error, Failure, Next: Publisher, Downstream: Subscriber>:
  Subscriber, OperatorPart
where Next.Output == Input, Next.Failure == Failure, Downstream.Input == Input {
  @usableFromInline let parent: SuccessionSubscriber<Input, UpstreamFailure, Next, Downstream>

  @usableFromInline
  init(parent: SuccessionSubscriber<Input, UpstreamFailure, Next, Downstream>) { self.parent = parent }

  @usableFromInline
  func receive(subscription: any Subscription) { _ = parent.link.connect(subscription, as: 1) }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    guard parent.link.isOpen(1) else {
      parent.link.ignoreIfEarly(.valueBeforeSubscription, from: 1)
      return .none
    }
    return parent.downstream.receive(input)
  }

  @usableFromInline
  func receive(completion: Subscribers.Completion<Failure>) {
    parent.receive(completion: completion, ofSuccessor: 1)
  }

  @usableFromInline var combineIdentifier: CombineIdentifier { parent.combineIdentifier }

  @usableFromInline var description: String { parent.description }

  @usableFromInline var customMirror: Mirror { parent.customMirror }
}
