/// What a publisher delivers to while it is the latest.
@usableFromInline
struct NestedSubscriber<Nested: Publisher, Input, Failure, Downstream: Subscriber>: Subscriber, OperatorPart
where
  Nested.Output == Input, Nested.Failure == Failure, Downstream.Input == Input, Downstream.Failure == Failure
{
  @usableFromInline typealias Parent = SwitchToLatestSubscriber<Nested, Failure, Downstream>

  @usableFromInline let parent: Parent
  @usableFromInline let number: UInt64
  @usableFromInline let combineIdentifier = CombineIdentifier()

  @inlinable
  init(parent: Parent, number: UInt64) {
    self.parent = parent
    self.number = number
  }

  @inlinable
  func receive(subscription: any Subscription) {
    parent.connect(subscription, number: number)
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    parent.receive(input, number: number)
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    parent.complete(completion, number: number)
  }

  @usableFromInline var description: String { "SwitchToLatest" }

  @usableFromInline var customMirror: Mirror {
    Mirror(self, children: [("parentSubscription", parent.combineIdentifier)])
  }
}
