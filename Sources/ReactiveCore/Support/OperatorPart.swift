/// A subscriber or a subscription of an operator, as a debugger, a playground or a log shows it: by the operator's name, and
/// without children unless the type says otherwise.
@usableFromInline
package protocol OperatorPart: CustomStringConvertible, CustomReflectable, CustomPlaygroundDisplayConvertible
{}

extension OperatorPart {
  @usableFromInline
  package var customMirror: Mirror { Mirror(self, children: EmptyCollection()) }

  /// A mirror with these children.
  @usableFromInline
  package func mirror(_ children: Mirror.Child...) -> Mirror { Mirror(self, children: children) }

  @usableFromInline
  package var playgroundDescription: Any { description }
}

/// A subscriber that holds no state of the stream: a subscription or completion that it doesn't change passes through to downstream. Values don't, by this
/// protocol: the compiler doesn't specialise such a function for the types of another module.
@usableFromInline
protocol PassThroughSubscriber: Subscriber {
  associatedtype Downstream: Subscriber

  var downstream: Downstream { get }
}

extension PassThroughSubscriber {
  @inlinable
  func receive(subscription: any Subscription) { downstream.receive(subscription: subscription) }
}

extension PassThroughSubscriber where Downstream.Failure == Failure {
  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) { downstream.receive(completion: completion) }
}
