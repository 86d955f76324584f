import Synchronization

/// What an operator of the reduce family makes of one value.
@usableFromInline
enum ReductionStep {
  /// Wants more values.
  case more
  /// Knows its result.
  case done
}

/// The part in which operators of the reduce family differ.
///
/// These are the operators that take everything upstream has and deliver at most one value: at the end, or as soon as they know
/// it, but not before it is asked for.
@usableFromInline
protocol Reduction<Input, Output, Errors> {
  associatedtype Input
  associatedtype Output
  associatedtype Errors: ErrorRule

  /// What is delivered at the end; nil for nothing.
  var result: Output? { get }

  /// Takes one value. Calls never overlap. If it throws, upstream is cancelled and downstream gets the error.
  mutating func receive(_ input: Input) throws -> ReductionStep
}

/// The subscriber, and the subscription, of an operator of the reduce family.
@usableFromInline
final class ReductionSubscriber<R: Reduction, Input, Failure, Downstream: Subscriber>: Subscriber,
  Subscription,
  CustomStringConvertible, CustomReflectable, CustomPlaygroundDisplayConvertible
where
  R.Input == Input, R.Errors.Upstream == Failure, Downstream.Input == R.Output,
  Downstream.Failure == R.Errors.Downstream
{
  /// Whether upstream may still deliver. Written under the lock.
  @usableFromInline let isOpen = Atomic<Bool>(false)

  /// Used by one value at a time; after the last, under the lock.
  @usableFromInline @exclusivity(unchecked) var reduction: R

  private let name: StaticString
  private let lock = Lock()
  // Guarded by the lock.
  private var downstream: Downstream?
  private var upstream: (any Subscription)?
  private var isConnected = false
  private var isRequested = false
  private var isComplete = false

  /// - Parameter name: The operator's name in descriptions.
  @usableFromInline
  init(_ name: StaticString, _ reduction: R, downstream: Downstream) {
    self.name = name
    self.reduction = reduction
    self.downstream = downstream
  }

  @usableFromInline
  func receive(subscription: any Subscription) {
    var accepted: Downstream?
    lock.withLock {
      if !isConnected {
        isConnected = true
        upstream = subscription
        accepted = downstream
        isOpen.store(true, ordering: .releasing)
      }
    }
    guard let accepted else { return subscription.cancel() }
    accepted.receive(subscription: self)
    if isOpen.load(ordering: .acquiring) {
      subscription.request(.unlimited)
    }
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    guard isOpen.load(ordering: .acquiring) else { return .none }
    do {
      switch try reduction.receive(input) {
      case .more: break
      case .done: finish(cancelling: true)
      }
    } catch {
      fail(R.Errors.convert(thrown: error), cancelling: true)
    }
    return .none
  }

  @usableFromInline
  func receive(completion: Subscribers.Completion<Failure>) {
    switch completion {
    case .finished:
      finish(cancelling: false)
    case .failure(let error):
      fail(R.Errors.convert(error), cancelling: false)
    }
  }

  /// Ends upstream. The result is delivered now if it is asked for, or if there is none.
  @usableFromInline
  func finish(cancelling: Bool) {
    var upstream: (any Subscription)?
    var downstream: Downstream?
    var result: R.Output?
    lock.withLock {
      guard isOpen.load(ordering: .relaxed) else { return }
      isOpen.store(false, ordering: .releasing)
      isComplete = true
      swap(&upstream, &self.upstream)
      result = reduction.result
      if isRequested || result == nil {
        swap(&downstream, &self.downstream)
      }
    }
    if cancelling {
      upstream?.cancel()
    }
    if let downstream {
      deliver(result, to: downstream)
    }
  }

  @usableFromInline
  func fail(_ error: R.Errors.Downstream, cancelling: Bool) {
    var upstream: (any Subscription)?
    var downstream: Downstream?
    lock.withLock {
      guard isOpen.load(ordering: .relaxed) else { return }
      isOpen.store(false, ordering: .releasing)
      swap(&upstream, &self.upstream)
      swap(&downstream, &self.downstream)
    }
    if cancelling {
      upstream?.cancel()
    }
    downstream?.receive(completion: .failure(error))
  }

  private func deliver(_ result: R.Output?, to downstream: Downstream) {
    if let result {
      _ = downstream.receive(result)
    }
    downstream.receive(completion: .finished)
  }

  @usableFromInline
  func request(_ demand: Subscribers.Demand) {
    demand.assertNonZero()
    var downstream: Downstream?
    var result: R.Output?
    lock.withLock {
      isRequested = true
      if isComplete {
        swap(&downstream, &self.downstream)
        result = reduction.result
      }
    }
    if let downstream {
      deliver(result, to: downstream)
    }
  }

  @usableFromInline
  func cancel() {
    var upstream: (any Subscription)?
    var downstream: Downstream?
    lock.withLock {
      isOpen.store(false, ordering: .releasing)
      isConnected = true
      swap(&upstream, &self.upstream)
      swap(&downstream, &self.downstream)
    }
    upstream?.cancel()
  }

  @usableFromInline var description: String { name.description }

  @usableFromInline var customMirror: Mirror {
    let (downstream, upstream): (Downstream?, (any Subscription)?) =
      lock.withLock { (self.downstream, self.upstream) }
    let result = isOpen.load(ordering: .acquiring) ? nil : reduction.result
    return Mirror(
      self,
      children: [
        ("downstream", downstream as Any), ("result", result as Any), ("initial", name),
        ("status", upstream as Any),
      ])
  }

  @usableFromInline var playgroundDescription: Any { description }
}
