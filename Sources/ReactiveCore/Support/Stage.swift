/// What an operator of the filter family makes of one value.
@usableFromInline
enum Verdict<Output, Failure: Error> {
  /// Passes a value on.
  case pass(Output)
  /// Passes nothing on and asks upstream for one more value in place of this one.
  case drop
  /// Passes a value on, then cancels upstream and finishes.
  case last(Output)
  /// Cancels upstream and finishes.
  case finish
  /// Cancels upstream and fails.
  case fail(Failure)
}

/// The part in which operators of the filter family differ: what becomes of one value, and of an error.
///
/// These are the operators that turn each value into at most one, and pass requests on unchanged.
@usableFromInline
protocol Stage<Input, Output, UpstreamFailure, Failure> {
  associatedtype Input
  associatedtype Output
  associatedtype UpstreamFailure: Error
  associatedtype Failure: Error

  /// The operator's name in descriptions.
  static var name: StaticString { get }

  /// Decides on one value. Calls never overlap.
  mutating func receive(_ input: Input) -> Verdict<Output, Failure>

  /// The error that downstream gets for one from upstream.
  func convert(_ failure: UpstreamFailure) -> Failure
}

extension Stage where UpstreamFailure == Failure {
  @inlinable
  func convert(_ failure: Failure) -> Failure { failure }
}

/// The subscriber of an operator of the filter family.
///
/// `Input` and `Failure` are parameters of their own, here and in other subscribers, because the optimiser does not see through
/// a chain of subscribers whose types depend on one another by way of associated types.
@usableFromInline
final class StageSubscriber<S: Stage, Input, Failure, Downstream: Subscriber>: Subscriber,
  CustomStringConvertible,
  CustomReflectable, CustomPlaygroundDisplayConvertible
where
  S.Input == Input, S.UpstreamFailure == Failure, Downstream.Input == S.Output,
  Downstream.Failure == S.Failure
{
  @usableFromInline let downstream: Downstream
  @usableFromInline let link: UpstreamLink<Downstream>
  @usableFromInline @exclusivity(unchecked) var stage: S  // used by one value at a time

  @inlinable
  init(_ stage: S, downstream: Downstream) {
    self.stage = stage
    self.downstream = downstream
    link = UpstreamLink(S.name, downstream: downstream)
  }

  @inlinable
  func receive(subscription: any Subscription) {
    if link.connect(subscription) {
      downstream.receive(subscription: link)
    }
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    guard link.isOpen else { return .none }
    switch stage.receive(input) {
    case .pass(let output):
      return downstream.receive(output)
    case .drop:
      return .max(1)
    case .last(let output):
      let more = downstream.receive(output)
      end(.finished)
      return more
    case .finish:
      end(.finished)
      return .none
    case .fail(let error):
      end(.failure(error))
      return .none
    }
  }

  @usableFromInline
  func end(_ completion: Subscribers.Completion<S.Failure>) {
    if link.stop() {
      downstream.receive(completion: completion)
    }
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    guard link.complete() else { return }
    switch completion {
    case .finished: downstream.receive(completion: .finished)
    case .failure(let error): downstream.receive(completion: .failure(stage.convert(error)))
    }
  }

  @usableFromInline var description: String { S.name.description }

  @usableFromInline var customMirror: Mirror { Mirror(self, children: [("downstream", downstream)]) }

  @usableFromInline var playgroundDescription: Any { description }
}
