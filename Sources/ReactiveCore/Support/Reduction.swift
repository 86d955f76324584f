import Synchronization

/// What an operator of the reduce family makes of one value.
@usableFromInline
enum ReductionStep {
  /// Wants more values.
  case more
  /// Knows its result.
  case done
  /// Fails.
  case fail(any Error)
}

/// The part in which operators of the reduce family differ.
///
/// These are the operators that take everything upstream has and deliver at most one value: at the end, or as soon as they know
/// it, but not before it is asked for.
@usableFromInline
protocol Reduction<Input, Output, UpstreamFailure, Failure> {
  associatedtype Input
  associatedtype Output
  associatedtype UpstreamFailure: Error
  associatedtype Failure: Error

  /// The operator's name in descriptions.
  static var name: StaticString { get }

  /// What is delivered at the end; nil for nothing.
  var result: Output? { get }

  /// Takes one value. Calls never overlap.
  mutating func receive(_ input: Input) -> ReductionStep

  /// The error that downstream gets for one from upstream.
  func convert(_ failure: UpstreamFailure) -> Failure

  /// The error that downstream gets for one from `receive`, which only `try` operators return.
  func convert(thrown error: any Error) -> Failure
}

extension Reduction where UpstreamFailure == Failure {
  @inlinable
  func convert(_ failure: Failure) -> Failure { failure }

  @inlinable
  func convert(thrown error: any Error) -> Failure {
    violation("An operator that cannot throw has thrown")
  }
}

/// The subscriber, and the subscription, of an operator of the reduce family.
@usableFromInline
final class ReductionSubscriber<R: Reduction, Input, Failure, Downstream: Subscriber>: Subscriber,
  Subscription,
  CustomStringConvertible, CustomReflectable, CustomPlaygroundDisplayConvertible
where
  R.Input == Input, R.UpstreamFailure == Failure, Downstream.Input == R.Output,
  Downstream.Failure == R.Failure
{
  /// Whether upstream may still deliver. Written under the lock.
  @usableFromInline let isOpen = Atomic<Bool>(false)

  /// Used by one value at a time; after the last, under the lock.
  @usableFromInline @exclusivity(unchecked) var reduction: R

  private let lock = Lock()
  // Guarded by the lock.
  private var downstream: Downstream?
  private var upstream: (any Subscription)?
  private var isConnected = false
  private var isRequested = false
  private var isComplete = false

  @usableFromInline
  init(_ reduction: R, downstream: Downstream) {
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
    switch reduction.receive(input) {
    case .more: break
    case .done: finish(cancelling: true)
    case .fail(let error): fail(reduction.convert(thrown: error), cancelling: true)
    }
    return .none
  }

  @usableFromInline
  func receive(completion: Subscribers.Completion<Failure>) {
    switch completion {
    case .finished:
      finish(cancelling: false)
    case .failure(let error):
      fail(reduction.convert(error), cancelling: false)
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
  func fail(_ error: R.Failure, cancelling: Bool) {
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

  @usableFromInline var description: String { R.name.description }

  @usableFromInline var customMirror: Mirror {
    let (downstream, upstream): (Downstream?, (any Subscription)?) =
      lock.withLock { (self.downstream, self.upstream) }
    let result = isOpen.load(ordering: .acquiring) ? nil : reduction.result
    return Mirror(
      self,
      children: [
        ("downstream", downstream as Any), ("result", result as Any), ("initial", R.name),
        ("status", upstream as Any),
      ])
  }

  @usableFromInline var playgroundDescription: Any { description }
}
