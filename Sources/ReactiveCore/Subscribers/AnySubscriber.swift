/// A subscriber whose type is hidden.
///
/// Wrapping an `AnySubscriber` again adds no layer.
@frozen
public struct AnySubscriber<Input, Failure: Error>: Subscriber, CustomStringConvertible, CustomReflectable,
  CustomPlaygroundDisplayConvertible
{
  @usableFromInline let box: AnySubscriberBase<Input, Failure>

  /// Hides the type of a subscriber. Identity, description and mirror remain those of the subscriber.
  @inlinable
  public init<S: Subscriber>(_ subscriber: S) where S.Input == Input, S.Failure == Failure {
    if S.self == AnySubscriber<Input, Failure>.self {
      self = unsafe unsafeBitCast(subscriber, to: AnySubscriber<Input, Failure>.self)
    } else {
      box = AnySubscriberBox(subscriber)
    }
  }

  init(box: AnySubscriberBase<Input, Failure>) { self.box = box }

  /// A subscriber that passes on what it gets to a subject, whose subscribers decide what is requested.
  public init<S: Subject>(_ subject: S) where S.Output == Input, S.Failure == Failure {
    self.init(SubjectSubscriber(subject))
  }

  /// A subscriber made of functions; one that is left out does nothing.
  ///
  /// - Parameters:
  ///   - receiveSubscription: Gets the subscription, once.
  ///   - receiveValue: Gets each value; returns how many more are wanted.
  ///   - receiveCompletion: Gets the end of the stream.
  @inlinable
  public init(
    receiveSubscription: ((any Subscription) -> Void)? = nil,
    receiveValue: ((Input) -> Subscribers.Demand)? = nil,
    receiveCompletion: ((Subscribers.Completion<Failure>) -> Void)? = nil
  ) {
    self.init(
      ClosureSubscriber(
        receiveSubscription: receiveSubscription, receiveValue: receiveValue,
        receiveCompletion: receiveCompletion))
  }

  @inlinable
  public func receive(subscription: any Subscription) { box.receive(subscription: subscription) }

  @inlinable
  public func receive(_ input: Input) -> Subscribers.Demand { box.deliver(box, input) }

  @inlinable
  public func receive(completion: Subscribers.Completion<Failure>) { box.receive(completion: completion) }

  /// The identifier of the subscriber within.
  public var combineIdentifier: CombineIdentifier { box.combineIdentifier }

  /// The description of the subscriber within.
  public var description: String { box.description }

  /// The mirror of the subscriber within.
  public var customMirror: Mirror { box.customMirror }

  /// The wrapped subscriber's description for playgrounds.
  public var playgroundDescription: Any { box.playgroundDescription }
}

/// The base class of all boxes.
@usableFromInline
class AnySubscriberBase<Input, Failure: Error> {
  /// Hands a value to the subscriber of the box that is the first argument.
  ///
  /// A method of a generic class is compiled for any subscriber. This function is compiled where the subscriber's type is
  /// known, so that what follows the boundary is as fast as if there were none. It captures nothing.
  @usableFromInline let deliver: (AnySubscriberBase<Input, Failure>, Input) -> Subscribers.Demand

  @inlinable
  init(deliver: @escaping (AnySubscriberBase<Input, Failure>, Input) -> Subscribers.Demand) {
    self.deliver = deliver
  }

  @usableFromInline func receive(subscription: any Subscription) {}

  @usableFromInline func receive(completion: Subscribers.Completion<Failure>) {}

  /// The subscriber within, if it is an object.
  @usableFromInline var object: AnyObject? { nil }

  @usableFromInline var combineIdentifier: CombineIdentifier { CombineIdentifier(self) }

  @usableFromInline var description: String { "AnySubscriber" }

  @usableFromInline var customMirror: Mirror { Mirror(self, children: EmptyCollection()) }

  @usableFromInline var playgroundDescription: Any { description }
}

/// Holds a subscriber of a known type.
@usableFromInline
final class AnySubscriberBox<S: Subscriber>: AnySubscriberBase<S.Input, S.Failure> {
  @usableFromInline let subscriber: S

  @inlinable
  init(_ subscriber: S) {
    self.subscriber = subscriber
    super.init { box, input in
      unsafe unsafeDowncast(box, to: AnySubscriberBox<S>.self).subscriber.receive(input)
    }
  }

  @usableFromInline
  override func receive(subscription: any Subscription) { subscriber.receive(subscription: subscription) }

  @usableFromInline
  override func receive(completion: Subscribers.Completion<S.Failure>) {
    subscriber.receive(completion: completion)
  }

  @usableFromInline override var object: AnyObject? {
    S.self is AnyObject.Type ? subscriber as AnyObject : nil
  }

  @usableFromInline override var combineIdentifier: CombineIdentifier { subscriber.combineIdentifier }

  @usableFromInline override var description: String {
    (subscriber as? any CustomStringConvertible)?.description ?? "AnySubscriber"
  }

  @usableFromInline override var customMirror: Mirror {
    (subscriber as? any CustomReflectable)?.customMirror ?? Mirror(subscriber, children: EmptyCollection())
  }

  @usableFromInline override var playgroundDescription: Any {
    (subscriber as? any CustomPlaygroundDisplayConvertible)?.playgroundDescription ?? description
  }
}

/// The subscriber behind ``AnySubscriber/init(receiveSubscription:receiveValue:receiveCompletion:)``.
@usableFromInline
struct ClosureSubscriber<Input, Failure: Error>: Subscriber, OperatorPart {
  @usableFromInline let receiveSubscription: ((any Subscription) -> Void)?
  @usableFromInline let receiveValue: ((Input) -> Subscribers.Demand)?
  @usableFromInline let receiveCompletion: ((Subscribers.Completion<Failure>) -> Void)?
  @usableFromInline let combineIdentifier = CombineIdentifier()

  @inlinable
  init(
    receiveSubscription: ((any Subscription) -> Void)?,
    receiveValue: ((Input) -> Subscribers.Demand)?,
    receiveCompletion: ((Subscribers.Completion<Failure>) -> Void)?
  ) {
    self.receiveSubscription = receiveSubscription
    self.receiveValue = receiveValue
    self.receiveCompletion = receiveCompletion
  }

  @inlinable
  func receive(subscription: any Subscription) { receiveSubscription?(subscription) }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand { receiveValue?(input) ?? .none }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) { receiveCompletion?(completion) }

  @usableFromInline var description: String { "Anonymous AnySubscriber" }
}
