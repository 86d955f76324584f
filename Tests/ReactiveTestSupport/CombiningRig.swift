import ReactiveCore
import Testing

/// An operator between several sources and a subscriber, each with a history of its own.
package final class CombiningRig<Output: Hashable> {
  package typealias Source = ManualPublisher<Int, Oops>

  package private(set) var sources: [Source]
  package let subscriber: TrackingSubscriber<Output, Oops>

  /// Subscribes at once.
  package init<Operator: Publisher>(
    of count: Int = 2, demand: Subscribers.Demand? = .unlimited, perValue: Subscribers.Demand = .none,
    subscribingAtOnce: Bool = true, _ makeOperator: ([Source]) -> Operator
  ) where Operator.Output == Output, Operator.Failure == Oops {
    sources = (0..<count).map { _ in Source() }
    subscriber = TrackingSubscriber(demand, perValue: perValue)
    for source in sources { source.subscribesAtOnce = subscribingAtOnce }
    makeOperator(sources).subscribe(subscriber)
  }

  package var subscription: any Subscription { subscriber.subscription! }

  /// The calls that downstream received since the last look.
  package func take() -> [Happening] { subscriber.history.take() }

  /// The requests to a source since the last look.
  package func asked(_ index: Int) -> [Happening] { sources[index].history.take() }

  /// The requests to all sources since the last look.
  package func askedAll() -> [[Happening]] { sources.indices.map(asked) }
}

/// Checks that a finished, a failed and a cancelled combination all let go of everything, although the subscriber keeps its subscription.
package func expectCombinationReleased<Operator: Publisher>(
  of count: Int = 2, sending values: [Int] = [0, 1, 0], demand: Subscribers.Demand = .unlimited,
  sourceLocation: SourceLocation = #_sourceLocation,
  _ makeOperator: ([ManualPublisher<Int, Oops>]) -> Operator
) where Operator.Output: Hashable, Operator.Failure == Oops {
  for end in End.allCases {
    var released = 0
    do {
      let rig = CombiningRig(of: count, demand: demand, makeOperator)
      rig.subscriber.onDeinit = { released += 1 }
      for source in rig.sources { source.onDeinit = { released += 1 } }
      for index in values { rig.sources[index].send(index) }
      switch end {
      case .finish: for source in rig.sources { source.send(completion: .finished) }
      case .failure: rig.sources[0].send(completion: .failure(Oops()))
      case .cancel: rig.subscription.cancel()
      }
      for source in rig.sources { source.forget() }
    }
    #expect(released == count + 1, "after \(end)", sourceLocation: sourceLocation)
  }
}
