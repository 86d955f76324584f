/// The decision of an operator of the filter family on one value.
@usableFromInline
enum Verdict<Output> {
  /// Passes a value on.
  case pass(Output)
  /// Passes nothing on and asks upstream for one more value in place of this one.
  case drop
  /// Passes a value on, then cancels upstream and finishes.
  case last(Output)
  /// Cancels upstream and finishes.
  case finish
}

/// The part in which operators of the filter family differ: how one value is treated.
///
/// These are the operators that turn each value into at most one, and pass requests on unchanged.
@usableFromInline
protocol Stage<Input, Output, Errors> {
  associatedtype Input
  associatedtype Output
  associatedtype Errors: ErrorRule

  /// Whether mirrors show downstream.
  static var isReflecting: Bool { get }

  /// Whether a request for nothing passes, instead of stopping the program.
  static var acceptsNone: Bool { get }

  /// Decides on one value. Calls never overlap. If it throws, upstream is cancelled and downstream gets the error.
  mutating func receive(_ input: Input) throws -> Verdict<Output>
}

extension Stage {
  @inlinable static var isReflecting: Bool { true }
  @inlinable static var acceptsNone: Bool { false }
}

extension Publisher {
  /// Attaches a subscriber behind a stage.
  ///
  /// - Parameter name: The operator's name in descriptions.
  @inlinable @inline(__always)
  func attach<S: Stage, Downstream: Subscriber>(_ name: StaticString, _ stage: S, to downstream: Downstream)
  where
    S.Input == Output, S.Errors.Upstream == Failure, Downstream.Input == S.Output,
    Downstream.Failure == S.Errors.Downstream
  {
    receive(subscriber: StageSubscriber<S, Output, Failure, Downstream>(name, stage, downstream: downstream))
  }
}

/// The subscriber of an operator of the filter family.
///
/// `Input` and `Failure` are parameters of their own, here and in other subscribers, because the optimiser does not see through
/// a chain of subscribers whose types depend on one another by way of associated types.
@usableFromInline
final class StageSubscriber<S: Stage, Input, Failure, Downstream: Subscriber>: Subscriber, OperatorPart
where
  S.Input == Input, S.Errors.Upstream == Failure, Downstream.Input == S.Output,
  Downstream.Failure == S.Errors.Downstream
{
  @usableFromInline let downstream: Downstream
  @usableFromInline let link: UpstreamLink<Downstream>
  @usableFromInline @exclusivity(unchecked) var stage: S  // used by one value at a time

  /// - Parameter name: The operator's name in descriptions.
  @inlinable
  init(_ name: StaticString, _ stage: S, downstream: Downstream) {
    unsafe self.stage = stage
    self.downstream = downstream
    link = UpstreamLink(
      name, downstream: downstream, isReflecting: S.isReflecting, acceptsNone: S.acceptsNone)
  }

  @inlinable
  func receive(subscription: any Subscription) {
    if link.connect(subscription) { downstream.receive(subscription: link) }
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    guard link.isOpen else { return .none }
    do {
      switch try unsafe stage.receive(input) {
      case .pass(let output): return downstream.receive(output)
      case .drop: return .max(1)
      case .last(let output):
        let more = downstream.receive(output)
        end(.finished)
        return more
      case .finish: end(.finished)
      }
    } catch {
      end(.failure(S.Errors.convert(thrown: error)))
    }
    return .none
  }

  @usableFromInline
  func end(_ completion: Subscribers.Completion<S.Errors.Downstream>) {
    if link.stop() { downstream.receive(completion: completion) }
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    guard link.complete() else { return }
    switch completion {
    case .finished: downstream.receive(completion: .finished)
    case .failure(let error): downstream.receive(completion: .failure(S.Errors.convert(error)))
    }
  }

  @usableFromInline var description: String { link.description }

  @usableFromInline var customMirror: Mirror {
    Mirror(self, children: S.isReflecting ? [("downstream", downstream)] : [])
  }
}

/// Which errors an operator receives, and how it converts them.
///
/// The plain and the `try` form of an operator are the same but for this: its stage or reduction takes the rule as a parameter.
/// The closure is stored as a throwing one in both forms, since a closure that doesn't throw is a throwing one already. With
/// `throws(Thrown)` it would need a wrapper, which costs two nanoseconds per value.
@usableFromInline
protocol ErrorRule<Upstream, Downstream> {
  /// The error that upstream may fail with.
  associatedtype Upstream: Error
  /// The error that downstream may get.
  associatedtype Downstream: Error

  /// The error that downstream gets for one from upstream.
  static func convert(_ failure: Upstream) -> Downstream

  /// The error that downstream gets for one from the closure.
  static func convert(thrown error: any Error) -> Downstream
}

/// The plain form: the closure does not throw, upstream's error passes as it is.
@usableFromInline
enum Passing<Failure: Error>: ErrorRule {
  @inlinable static func convert(_ failure: Failure) -> Failure { failure }

  @inlinable
  static func convert(thrown error: any Error) -> Failure {
    violation("An operator that cannot throw has thrown")
  }
}

/// The `try` form: the closure may throw, downstream gets any error.
@usableFromInline
enum Trying<UpstreamFailure: Error>: ErrorRule {
  @inlinable static func convert(_ failure: UpstreamFailure) -> any Error { failure }

  @inlinable static func convert(thrown error: any Error) -> any Error { error }
}
