import ReactiveCore
import Testing

/// An operator between a source and a subscriber that record into one history.
package final class Rig<Input, Failure: Error, Operator: Publisher> where Operator.Output: Hashable {
  package typealias Source = ManualPublisher<Input, Failure>

  package let history: History
  package let source: Source
  package let subscriber: TrackingSubscriber<Operator.Output, Operator.Failure>

  /// Subscribes at once.
  package init(
    source: Source, demand: Subscribers.Demand? = .unlimited, perValue: Subscribers.Demand = .none,
    _ makeOperator: (Source) -> Operator
  ) {
    self.source = source
    history = source.history
    subscriber = TrackingSubscriber(demand, perValue: perValue, history: history)
    makeOperator(source).subscribe(subscriber)
  }

  package var subscription: any Subscription { subscriber.subscription! }

  package func take() -> [Happening] { history.take() }
}

extension Rig where Input == Int, Failure == Oops {
  /// With a source of numbers that may fail.
  package convenience init(
    demand: Subscribers.Demand? = .unlimited, perValue: Subscribers.Demand = .none,
    subscribesAtOnce: Bool = true, _ makeOperator: (Source) -> Operator
  ) {
    let source = Source()
    source.subscribesAtOnce = subscribesAtOnce
    self.init(source: source, demand: demand, perValue: perValue, makeOperator)
  }
}

package enum End: CaseIterable {
  case finish
  case failure
  case cancel
}

/// Checks that a finished, a failed and a cancelled pipeline all let go of everything, although the subscriber keeps its subscription.
package func expectEverythingReleased<Operator: Publisher>(
  sending values: [Int] = [1], demand: Subscribers.Demand? = .unlimited,
  sourceLocation: SourceLocation = #_sourceLocation,
  _ makeOperator: (ManualPublisher<Int, Oops>) -> Operator
) where Operator.Output: Hashable {
  for end in End.allCases {
    var released = 0
    do {
      let rig = Rig<Int, Oops, Operator>(demand: demand, makeOperator)
      rig.subscriber.onDeinit = { released += 1 }
      rig.source.onDeinit = { released += 1 }
      for value in values { rig.source.send(value) }
      switch end {
      case .finish: rig.source.send(completion: .finished)
      case .failure: rig.source.send(completion: .failure(Oops()))
      case .cancel: rig.subscription.cancel()
      }
      rig.source.forget()
    }
    #expect(released == 2, "after \(end)", sourceLocation: sourceLocation)
  }
}

/// Something whose life a test observes.
private final class Captive {}

/// Checks that a finished, a failed and a cancelled pipeline let go of what the operator's closure has captured, although the
/// subscriber keeps its subscription.
package func expectClosureReleased<Operator: Publisher>(
  sending values: [Int] = [1], sourceLocation: SourceLocation = #_sourceLocation,
  _ makeOperator: (ManualPublisher<Int, Oops>, AnyObject) -> Operator
) where Operator.Output: Hashable {
  for end in End.allCases {
    for demand in [nil, Subscribers.Demand.unlimited] {
      weak var observed: Captive?
      let rig: Rig<Int, Oops, Operator>
      do {
        let token = Captive()
        observed = token
        rig = Rig(source: ManualPublisher(), demand: demand) { makeOperator($0, token) }
      }
      for value in values { rig.source.send(value) }
      #expect(observed != nil, "before the \(end)", sourceLocation: sourceLocation)
      switch end {
      case .finish: rig.source.send(completion: .finished)
      case .failure: rig.source.send(completion: .failure(Oops()))
      case .cancel: rig.subscription.cancel()
      }
      rig.source.forget()
      #expect(observed == nil, "after the \(end), demand \(demand as Any)", sourceLocation: sourceLocation)
    }
  }
}
