import ReactiveCore
import ReactiveTestSupport
import Testing

/// Every operator with upstreams that send within the call of `request(_:)`, like `Just`, `@Published` and `CurrentValueSubject`. This may be before
/// the operator's own subscription is complete.
///
/// A pipeline delivers the same as another one, whose upstreams send nothing until the subscription is complete.
@Suite struct SynchronousUpstreamTests {
  /// The values of an upstream, and whether it ends after them.
  struct Upstream: CustomTestStringConvertible, Sendable {
    let numbers: [Int]
    let ends: Bool

    static let all = [
      Upstream(numbers: [1, 2, 3], ends: false), Upstream(numbers: [1, 2, 3], ends: true),
      Upstream(numbers: [], ends: true),
    ]

    var testDescription: String { "\(numbers)\(ends ? ", then the end" : "")" }
  }

  /// - Parameters:
  ///   - positions: The upstreams to test, in the order in which the operator subscribes to them.
  ///   - isSynchronous: Whether these send from within the request, or after the subscription.
  static func run(
    _ subject: OperatorCase, _ positions: [Int], _ upstream: Upstream, demand: Subscribers.Demand,
    isSynchronous: Bool
  ) -> [Happening] {
    let scheduler = ManualScheduler()
    let sources = (0..<subject.upstreams).map { position in
      positions.contains(position)
        ? TableSource(connectsAtOnce: true, numbers: upstream.numbers) : TableSource(connectsAtOnce: true)
    }
    let subscriber = TrackingSubscriber<String, any Error>(demand)
    func open(_ source: TableSource, ending: Bool) {
      source.open()
      if ending { source.end() }
    }
    if isSynchronous { for position in positions { open(sources[position], ending: upstream.ends) } }
    subject.make(sources.map { AnyPublisher($0) }, scheduler).subscribe(subscriber)
    if !isSynchronous {
      // An operator that subscribes on the scheduler has now done it, and no value has been sent.
      scheduler.advance()
      for position in positions { open(sources[position], ending: upstream.ends) }
    }
    scheduler.advance(by: 100)
    for source in sources { open(source, ending: true) }
    scheduler.advance(by: 100)
    return subscriber.history.events.filter { if case .subscription = $0 { false } else { true } }
  }

  /// The sets of upstreams to test: each alone, then all.
  static func positions(of subject: OperatorCase) -> [[Int]] {
    let all = Array(0..<subject.upstreams)
    // These subscribe to the other publisher first.
    let isOtherFirst = subject.name.contains("untilOutputFrom")
    return all.map { [$0] } + (all.count > 1 ? [isOtherFirst ? all.reversed() : all] : [])
  }

  @Test(arguments: OperatorCase.all, Upstream.all)
  func whatComesWithinTheRequestIsNotLost(subject: OperatorCase, upstream: Upstream) {
    for positions in Self.positions(of: subject) {
      for demand in [Subscribers.Demand.unlimited, .max(2)] {
        let later = Self.run(subject, positions, upstream, demand: demand, isSynchronous: false)
        let atOnce = Self.run(subject, positions, upstream, demand: demand, isSynchronous: true)
        #expect(atOnce == later, "upstreams \(positions), \(demand)")
      }
    }
  }
}
