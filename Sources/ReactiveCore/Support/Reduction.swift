import Synchronization

/// The decision of an operator of the reduce family on one value.
@usableFromInline
enum ReductionStep {
  /// Wants more values.
  case more
  /// Knows its result.
  case done
}

/// The part in which operators of the reduce family differ.
///
/// These operators request everything from upstream and deliver at most one value: at the end, or as soon as it is known, but
/// only on demand.
@usableFromInline
protocol Reduction<Input, Output, Errors> {
  associatedtype Input
  associatedtype Output
  associatedtype Errors: ErrorRule

  /// The result at the end; nil for none.
  var result: Output? { get }

  /// Takes one value. Calls never overlap. If it throws, upstream is cancelled and downstream gets the error.
  mutating func receive(_ input: Input) throws -> ReductionStep
}

extension Publisher {
  /// Attaches a subscriber behind a reduction.
  ///
  /// - Parameter name: The operator's name in descriptions.
  @inlinable @inline(__always)
  func attach<R: Reduction, Downstream: Subscriber>(
    _ name: StaticString, _ reduction: R, to downstream: Downstream
  )
  where
    R.Input == Output, R.Errors.Upstream == Failure, Downstream.Input == R.Output,
    Downstream.Failure == R.Errors.Downstream
  {
    receive(
      subscriber: ReductionSubscriber<R, Output, Failure, Downstream>(
        name, reduction, downstream: downstream))
  }
}

/// The subscriber of an operator of the reduce family.
///
/// Upstream holds it, and the result so far with it; downstream holds the link, which gets the result at the end. So a
/// subscriber that keeps its subscription keeps neither values nor the operator's closure alive.
@usableFromInline
final class ReductionSubscriber<R: Reduction, Input, Failure, Downstream: Subscriber>: Subscriber,
  OperatorPart
where
  R.Input == Input, R.Errors.Upstream == Failure, Downstream.Input == R.Output,
  Downstream.Failure == R.Errors.Downstream
{
  @usableFromInline let link: ReductionLink<Downstream>
  @usableFromInline @exclusivity(unchecked) var reduction: R  // used by one value at a time

  /// - Parameter name: The operator's name in descriptions.
  @usableFromInline
  init(_ name: StaticString, _ reduction: R, downstream: Downstream) {
    unsafe self.reduction = reduction
    link = ReductionLink(name, initial: reduction.result, downstream: downstream)
  }

  @usableFromInline
  func receive(subscription: any Subscription) { link.connect(subscription) }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    guard link.isOpen else {
      link.ignoreIfEarly(.valueBeforeSubscription)
      return .none
    }
    do {
      switch try unsafe reduction.receive(input) {
      case .more: break
      case .done: unsafe link.finish(with: reduction.result, cancelling: true)
      }
    } catch {
      link.fail(R.Errors.convert(thrown: error), cancelling: true)
    }
    return .none
  }

  @usableFromInline
  func receive(completion: Subscribers.Completion<Failure>) {
    guard link.isOpen else {
      link.ignoreIfEarly(.completionBeforeSubscription)
      return
    }
    switch completion {
    case .finished: unsafe link.finish(with: reduction.result, cancelling: false)
    case .failure(let error): link.fail(R.Errors.convert(error), cancelling: false)
    }
  }

  @usableFromInline var description: String { link.description }

  @usableFromInline var customMirror: Mirror { Mirror(self, children: link.children) }
}

/// The subscription of an operator of the reduce family: keeps the result until there is demand.
@usableFromInline
final class ReductionLink<Downstream: Subscriber>: Subscription, SubscriptionAwaiting, OperatorPart {
  @usableFromInline let openness = Atomic<Bool>(false)  // written under the lock

  /// Whether upstream may still deliver.
  @inlinable var isOpen: Bool { openness.load(ordering: .acquiring) }

  @usableFromInline let name: StaticString
  private let lock = Lock()
  // Guarded by the lock.
  private var downstream: Downstream?
  private var upstream: (any Subscription)?
  private var initial: Downstream.Input?  // for the mirror
  private var result: Downstream.Input?
  private var isConnected = false
  private var isRequested = false
  private var isComplete = false

  init(_ name: StaticString, initial: Downstream.Input?, downstream: Downstream) {
    self.name = name
    self.initial = initial
    self.downstream = downstream
  }

  @usableFromInline var isAwaitingSubscription: Bool { lock.withLock { !isConnected } }

  /// Takes the subscription, and asks it for everything after downstream knows its own. A second one is cancelled.
  func connect(_ subscription: any Subscription) {
    var accepted: Downstream?
    lock.withLock {
      if !isConnected {
        isConnected = true
        upstream = subscription
        accepted = downstream
        openness.store(true, ordering: .releasing)
      }
    }
    guard let accepted else { return subscription.cancel() }
    accepted.receive(subscription: self)
    if isOpen { subscription.request(.unlimited) }
  }

  /// Ends upstream. The result is delivered now if there is demand, or if there is no result.
  @usableFromInline
  func finish(with result: Downstream.Input?, cancelling: Bool) {
    var held = Held()
    lock.withLock {
      guard openness.load(ordering: .relaxed) else { return }
      isComplete = true
      if isRequested || result == nil {
        held = release()
      } else {
        openness.store(false, ordering: .releasing)
        swap(&held.upstream, &upstream)
        self.result = result
      }
    }
    if cancelling { held.upstream?.cancel() }
    if let downstream = held.downstream { deliver(result, to: downstream) }
  }

  @usableFromInline
  func fail(_ error: Downstream.Failure, cancelling: Bool) {
    var held = Held()
    lock.withLock {
      if openness.load(ordering: .relaxed) { held = release() }
    }
    if cancelling { held.upstream?.cancel() }
    held.downstream?.receive(completion: .failure(error))
  }

  private func deliver(_ result: Downstream.Input?, to downstream: Downstream) {
    if let result { _ = downstream.receive(result) }
    downstream.receive(completion: .finished)
  }

  @usableFromInline
  func request(_ demand: Subscribers.Demand) {
    demand.assertNonZero()
    var held = Held()
    lock.withLock {
      isRequested = true
      if isComplete { held = release() }
    }
    if let downstream = held.downstream { deliver(held.result, to: downstream) }
  }

  @usableFromInline
  func cancel() {
    var held = Held()
    lock.withLock {
      isConnected = true
      held = release()
    }
    held.upstream?.cancel()
  }

  /// The contents of the link until the end, to be used and released outside the lock.
  private struct Held {
    var downstream: Downstream?
    var upstream: (any Subscription)?
    var initial: Downstream.Input?
    var result: Downstream.Input?
  }

  /// Ends the stream. Called with the lock held.
  private func release() -> Held {
    openness.store(false, ordering: .releasing)
    var held = Held()
    swap(&held.downstream, &downstream)
    swap(&held.upstream, &upstream)
    swap(&held.initial, &initial)
    swap(&held.result, &result)
    return held
  }

  /// The children of mirrors.
  var children: [Mirror.Child] {
    let (downstream, initial, result, upstream) = lock.withLock {
      (self.downstream, self.initial, self.result ?? self.initial, self.upstream)
    }
    return [
      ("downstream", downstream as Any), ("result", result as Any), ("initial", initial as Any),
      ("status", upstream as Any),
    ]
  }

  @usableFromInline var description: String { name.description }

  @usableFromInline var customMirror: Mirror { Mirror(self, children: children) }
}
