import ReactiveCore
import Testing

/// A value whose release can be seen.
package final class Token: Hashable {
  package init() {}

  package static func == (lhs: Token, rhs: Token) -> Bool { lhs === rhs }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(self))
  }
}

/// Checks that an operator releases values and subscriber as soon as the stream has ended, although the scheduler keeps its
/// functions and the subscriber its subscription.
package func expectSchedulerKeepsNothing<Operator: Publisher>(
  sourceLocation: SourceLocation = #_sourceLocation,
  _ makeOperator: (ManualPublisher<Token, Oops>, ManualScheduler) -> Operator
) where Operator.Output: Hashable {
  for end in End.allCases {
    let scheduler = ManualScheduler()
    weak var token: Token?
    weak var subscriber: TrackingSubscriber<Operator.Output, Operator.Failure>?
    var subscription: (any Subscription)?
    do {
      let rig = Rig<Token, Oops, Operator>(source: ManualPublisher()) { makeOperator($0, scheduler) }
      subscriber = rig.subscriber
      scheduler.advance()
      subscription = rig.subscription
      let value = Token()
      token = value
      rig.source.send(value)
      switch end {
      case .cancel: rig.subscription.cancel()
      case .finish: rig.source.send(completion: .finished)
      case .failure: rig.source.send(completion: .failure(Oops()))
      }
      rig.source.forget()
      if end != .cancel { scheduler.advance(by: .seconds(1_000)) }
      _ = rig.take()
    }
    #expect(token == nil, "the value, after \(end)", sourceLocation: sourceLocation)
    #expect(subscriber == nil, "the subscriber, after \(end)", sourceLocation: sourceLocation)
    withExtendedLifetime((scheduler, subscription)) {}
  }
}

/// Checks that an operator does not deliver a value within another, but does so afterwards.
///
/// - Parameter time: After which the operator has delivered a value.
package func expectDeliveriesDoNotNest<Operator: Publisher>(
  after time: ManualScheduler.SchedulerTimeType.Stride, sourceLocation: SourceLocation = #_sourceLocation,
  _ makeOperator: (ManualPublisher<Int, Oops>, ManualScheduler) -> Operator
) where Operator.Output: Hashable {
  let scheduler = ManualScheduler()
  let rig = Rig<Int, Oops, Operator> { makeOperator($0, scheduler) }
  scheduler.advance()
  _ = rig.take()
  var depth = 0
  var deepest = 0
  var count = 0
  rig.subscriber.onValue = { [unowned rig] _ in
    depth += 1
    deepest = max(deepest, depth)
    count += 1
    if count < 4 {
      rig.source.send(count)
      scheduler.advance(by: time)
    }
    depth -= 1
  }
  rig.source.send(0)
  scheduler.advance(by: time)
  #expect(deepest == 1, sourceLocation: sourceLocation)
  #expect(count == 4, sourceLocation: sourceLocation)
}

/// Checks that what falls due while downstream is getting its subscription is delivered after it and on the scheduler.
///
/// - Parameter time: After which the operator has delivered a value and the completion.
package func expectEarlyDeliveriesGoThroughTheScheduler<Operator: Publisher>(
  after time: ManualScheduler.SchedulerTimeType.Stride, sourceLocation: SourceLocation = #_sourceLocation,
  _ makeOperator: (ManualPublisher<Int, Oops>, ManualScheduler) -> Operator
) where Operator.Output: Hashable {
  let scheduler = ManualScheduler()
  let rig = Rig<Int, Oops, Operator>(demand: nil, subscribesAtOnce: false) { makeOperator($0, scheduler) }
  var isGettingSubscription = false
  var isNested = false
  var values = 0
  rig.subscriber.onValue = { _ in
    values += 1
    isNested = isNested || isGettingSubscription
  }
  rig.subscriber.onCompletion = { isNested = isNested || isGettingSubscription }
  rig.subscriber.onSubscription = { [unowned rig] subscription in
    isGettingSubscription = true
    subscription.request(.unlimited)
    rig.source.send(1)
    scheduler.advance(by: time)
    rig.source.send(completion: .finished)
    scheduler.advance(by: time)
    isGettingSubscription = false
  }
  rig.source.sendSubscription()
  #expect(values == 0, "on the subscribing thread", sourceLocation: sourceLocation)
  scheduler.advance(by: time)
  #expect(values == 1, sourceLocation: sourceLocation)
  #expect(rig.take().last == .finished, sourceLocation: sourceLocation)
  #expect(!isNested, sourceLocation: sourceLocation)
}
