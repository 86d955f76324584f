import Dispatch
import ReactiveCore
import ReactiveTestSupport
import Testing

/// Every operator with an upstream that delivers its subscription late, in each of its positions.
///
/// A pipeline gets the same values and requests the same demand as another one, whose upstream delivers its subscription at once and then sends
/// nothing until the moment of the late one.
@Suite struct LateUpstreamTests {
  enum Moment: CaseIterable, Sendable {
    case afterTheRequest
    case afterOthersHaveSent
    case afterOthersHaveEnded
  }

  /// The result of a run.
  struct Outcome: Equatable {
    var events: [Happening]
    var asked: [Subscribers.Demand]
  }

  /// An operator between its sources and a subscriber.
  final class Pipeline {
    let scheduler = ManualScheduler()
    let sources: [TableSource]
    let subscriber: TrackingSubscriber<String, any Error>

    init(_ subject: OperatorCase, late position: Int?, demand: Subscribers.Demand) {
      sources = (0..<subject.upstreams).map { TableSource(connectsAtOnce: $0 != position) }
      subscriber = TrackingSubscriber(demand)
      subject.make(sources.map { AnyPublisher($0) }, scheduler).subscribe(subscriber)
      settle()
    }

    func settle() {
      scheduler.advance(by: 100)
    }

    /// Values and completion. The subscription may arrive earlier or later.
    var outcome: Outcome {
      let events = subscriber.history.events.filter { if case .subscription = $0 { false } else { true } }
      return Outcome(events: events, asked: sources.map(\.asked))
    }

    func others(than position: Int) -> [TableSource] {
      sources.indices.filter { $0 != position }.map { sources[$0] }
    }
  }

  static func run(
    _ subject: OperatorCase, _ position: Int, _ moment: Moment, demand: Subscribers.Demand, isLate: Bool
  ) -> Outcome {
    let pipeline = Pipeline(subject, late: isLate ? position : nil, demand: demand)
    let others = pipeline.others(than: position)
    if moment != .afterTheRequest { others.open() }
    if moment == .afterOthersHaveEnded { others.end() }
    pipeline.settle()
    let source = pipeline.sources[position]
    let isOver = pipeline.outcome.events.last == .finished
    source.connect()
    pipeline.settle()
    source.open()
    pipeline.settle()
    others.open()
    pipeline.settle()
    source.end()
    others.end()
    pipeline.settle()
    var outcome = pipeline.outcome
    // Nothing is requested from an upstream that connects after the end of the pipeline.
    if isOver { outcome.asked[position] = .none }
    return outcome
  }

  @Test(arguments: OperatorCase.all, Moment.allCases)
  func aLateSubscriptionLosesNothing(subject: OperatorCase, moment: Moment) {
    for position in 0..<subject.upstreams {
      for demand in [Subscribers.Demand.unlimited, .max(2)] {
        let prompt = Self.run(subject, position, moment, demand: demand, isLate: false)
        let late = Self.run(subject, position, moment, demand: demand, isLate: true)
        #expect(late == prompt, "upstream \(position), \(demand)")
      }
    }
  }

  /// The comparison would mean little if the pipelines delivered nothing.
  @Test(arguments: OperatorCase.all)
  func aPipelineEndsAndIsNotSilent(subject: OperatorCase) {
    let outcome = Self.run(subject, 0, .afterTheRequest, demand: .unlimited, isLate: true)
    #expect(outcome.events.last == .finished)
    // The source has sent everything when the other upstream sends for the first time.
    let isSilent = ["ignoreOutput()", "drop(untilOutputFrom:)"].contains(subject.name)
    #expect((outcome.events.count == 1) == isSilent)
  }

  @Test(arguments: OperatorCase.all)
  func aSubscriptionThatComesAfterCancellationIsCancelled(subject: OperatorCase) {
    for position in 0..<subject.upstreams {
      let pipeline = Pipeline(subject, late: position, demand: .unlimited)
      // An operator that passes the subscription on has nothing to cancel yet.
      guard let subscription = pipeline.subscriber.subscription else { continue }
      let source = pipeline.sources[position]
      let isSubscribed = source.isSubscribed
      let before = pipeline.outcome.events
      subscription.cancel()
      pipeline.settle()
      source.connect()
      source.open()
      source.end()
      pipeline.settle()
      #expect(pipeline.outcome.events == before, "upstream \(position)")
      #expect(source.asked == .none, "upstream \(position)")
      #expect(source.isCancelled == isSubscribed, "upstream \(position)")
    }
  }

  /// The subscription arrives on one thread while downstream requests more on another: no request is lost or counted twice.
  @Test(arguments: OperatorCase.all)
  func aLateSubscriptionMayRaceWithRequests(subject: OperatorCase) {
    for position in 0..<subject.upstreams {
      let orders = [true, false].map { Self.race(subject, position, connectsFirst: $0) }
      for _ in 0..<10 {
        let outcome = Self.race(subject, position, connectsFirst: nil)
        #expect(orders.contains(outcome), "upstream \(position)")
      }
    }
  }

  /// - Parameter connectsFirst: Whether the connection comes before the request; both at a time if nil.
  static func race(_ subject: OperatorCase, _ position: Int, connectsFirst: Bool?) -> Outcome {
    let pipeline = Pipeline(subject, late: position, demand: .max(1))
    pipeline.others(than: position).open()
    pipeline.settle()
    let source = pipeline.sources[position]
    let subscription = pipeline.subscriber.subscription
    func request() {
      for _ in 0..<3 { subscription?.request(.max(1)) }
    }
    if let connectsFirst {
      if connectsFirst { source.connect() }
      request()
      if !connectsFirst { source.connect() }
    } else {
      // Only the two calls share the box, and each uses only objects that are safe to use from any thread.
      let work = UncheckedBox((connect: source.connect, request: request))
      DispatchQueue.concurrentPerform(iterations: 2) { index in
        index == 0 ? work.value.connect() : work.value.request()
      }
    }
    pipeline.settle()
    source.open()
    pipeline.settle()
    pipeline.sources.end()
    pipeline.settle()
    return pipeline.outcome
  }
}
