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
  func receive(subscription: any Subscription) {
    link.connect(subscription)
  }

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
