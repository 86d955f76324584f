/// An operator's subscriber that does something when another publisher sends its first value.
@usableFromInline
protocol Triggered: AnyObject, CustomCombineIdentifierConvertible, OperatorPart {
  associatedtype Downstream

  /// Keeps the other publisher's subscription beside that of upstream.
  var link: SuccessionLink<Downstream> { get }

  /// The other publisher has sent its first value.
  func trigger()
}

/// What the other publisher delivers to. It shows itself as the operator.
@usableFromInline
struct TriggerSubscriber<Input, Failure: Error, Parent: Triggered>: Subscriber, OperatorPart {
  @usableFromInline let parent: Parent
  private let complete: (Subscribers.Completion<Failure>) -> Void

  /// - Parameter complete: Called when the other publisher has ended.
  @usableFromInline
  init(parent: Parent, complete: @escaping (Subscribers.Completion<Failure>) -> Void) {
    self.parent = parent
    self.complete = complete
  }

  @usableFromInline
  func receive(subscription: any Subscription) {
    if parent.link.accompany(subscription) {
      subscription.request(.max(1))
    }
  }

  @usableFromInline
  func receive(_ input: Input) -> Subscribers.Demand {
    if !parent.link.ignoreIfUnaccompanied(.valueBeforeSubscription) {
      parent.trigger()
    }
    return .none
  }

  @usableFromInline
  func receive(completion: Subscribers.Completion<Failure>) {
    if !parent.link.ignoreIfUnaccompanied(.completionBeforeSubscription) {
      complete(completion)
    }
  }

  @usableFromInline var combineIdentifier: CombineIdentifier { parent.combineIdentifier }

  @usableFromInline var description: String { parent.description }

  @usableFromInline var customMirror: Mirror { parent.customMirror }
}
