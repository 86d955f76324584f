import ReactiveCore
import ReactiveTestSupport
import Testing

/// Every operator with upstreams that always have more values, and a subscriber that requests few or none.
///
/// An operator's demand follows downstream's demand, apart from a few values that it may fetch ahead.
@Suite struct QuietSubscriberTests {
  /// Operators that request all values although downstream requests none, and the reason.
  static let unbounded: [String: String] = {
    var reasons: [String: String] = [:]
    // Operators that find their result at once stop after it.
    let early = ["first", "tryFirst", "contains", "tryContains"]
    for subject in OperatorCase.reducing where subject.name != "collect(_:)" {
      if early.contains(where: { subject.name.hasPrefix("\($0)(") }) { continue }
      reasons[subject.testDescription] =
        "needs all values for one result, which it keeps until it is asked for"
    }
    reasons["debounce(for:scheduler:options:)"] = "keeps one value, drops the others"
    reasons["throttle(for:scheduler:latest:)"] = "keeps one value, drops the others"
    reasons["buffer(size:prefetch:whenFull:), by request"] =
      "keeps as many as its size says, drops the others"
    reasons["flatMap(maxPublishers:_:), outer"] = "is allowed any number of publishers at a time"
    reasons["switchToLatest(), outer"] = "follows the latest publisher, drops the others"
    return reasons
  }()

  /// Operators that request all values once downstream requests some, and the reason.
  static let unboundedOnceAsked: [String: String] = {
    var reasons = unbounded
    let shared = "a subject takes all values, and a subscriber that has asked for none misses them"
    for name in ["makeConnectable()", "autoconnect()", "multicast(_:)", "multicast(subject:)", "share()"] {
      reasons[name] = shared
    }
    reasons["collect(_:options:), by time"] = "puts all values of an interval in one array"
    return reasons
  }()

  /// More than any operator may fetch ahead from one upstream.
  static let bound = 4

  /// Sends endless numbers while it has demand, from within the call of `request(_:)`.
  final class Source: Publisher, Subscription {
    typealias Output = Int
    typealias Failure = Oops

    /// The number of values at which a pipeline with unlimited demand is stopped.
    static let limit = 1_000

    private(set) var sent = 0
    private var owed = Subscribers.Demand.none
    private var isDelivering = false
    private var subscriber: AnySubscriber<Int, Oops>?

    func receive<S: Subscriber>(subscriber: S) where S.Input == Int, S.Failure == Oops {
      self.subscriber = AnySubscriber(subscriber)
      subscriber.receive(subscription: self)
    }

    func request(_ demand: Subscribers.Demand) {
      owed += demand
      guard !isDelivering else { return }
      isDelivering = true
      while owed > .none, sent < Self.limit, let subscriber {
        owed -= 1
        sent += 1
        owed += subscriber.receive(sent)
      }
      isDelivering = false
    }

    func cancel() { subscriber = nil }
  }

  /// - Returns: The largest number of values that an upstream has sent.
  static func run(_ subject: OperatorCase, demand: Subscribers.Demand?, thenOneByOne count: Int = 0) -> Int {
    let sources = (0..<subject.upstreams).map { _ in Source() }
    let scheduler = ManualScheduler()
    let subscriber = TrackingSubscriber<String, any Error>(demand)
    subject.make(sources.map { AnyPublisher($0) }, scheduler).subscribe(subscriber)
    scheduler.advance(by: 10)
    for _ in 0..<count {
      subscriber.subscription?.request(.max(1))
      scheduler.advance(by: 10)
    }
    subscriber.subscription?.cancel()
    scheduler.advance(by: 10)
    return sources.map(\.sent).max() ?? 0
  }

  @Test(arguments: OperatorCase.all.filter { unbounded[$0.testDescription] == nil })
  func withoutDemandFewValuesAreFetched(subject: OperatorCase) {
    #expect(Self.run(subject, demand: nil) <= Self.bound)
  }

  /// Collecting by two needs two values for each requested one; some operators drop values first.
  @Test(arguments: OperatorCase.all.filter { unboundedOnceAsked[$0.testDescription] == nil })
  func valuesAreFetchedAsTheyAreAskedFor(subject: OperatorCase) {
    #expect(Self.run(subject, demand: .max(1), thenOneByOne: 19) <= 2 * 20 + Self.bound)
  }

  @Test func theExceptionsAskForEverything() {
    func check(_ exceptions: [String: String], demand: Subscribers.Demand?) {
      let subjects = OperatorCase.all.filter { exceptions[$0.testDescription] != nil }
      #expect(subjects.count == exceptions.count)
      for subject in subjects {
        #expect(Self.run(subject, demand: demand) > Self.bound, "\(subject)")
      }
    }
    check(Self.unbounded, demand: nil)
    check(Self.unboundedOnceAsked, demand: .max(1))
  }
}
