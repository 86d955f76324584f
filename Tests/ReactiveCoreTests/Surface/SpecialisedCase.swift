import ReactiveCore
import ReactiveTestSupport
import Testing

/// A publisher without specialised operators: calls on it use the general operator.
struct General<Upstream: Publisher>: Publisher {
  typealias Output = Upstream.Output
  typealias Failure = Upstream.Failure

  let upstream: Upstream

  func receive<S: Subscriber>(subscriber: S) where S.Input == Upstream.Output, S.Failure == Upstream.Failure {
    upstream.receive(subscriber: subscriber)
  }
}

/// An operator that `Just` or another source declares for itself, in addition to the operator of all publishers.
struct SpecialisedCase: CustomTestStringConvertible, Sendable {
  /// The type and the function with its labels, as the sources of the module declare it.
  let name: String
  /// The number of the declaration with that name, from 1.
  let overload: Int
  /// A label that distinguishes several cases of one declaration.
  let detail: String
  /// The events of the result for unlimited demand, by upstream, where Combine's specialised operator differs from Combine's
  /// general one.
  let asCombine: [Int: [String]]
  /// The operator over each upstream.
  let pairs: @Sendable () -> [Pair]

  struct Pair {
    let upstream: String
    /// Whether the two are different operators.
    let isSpecialised: Bool
    let special: AnyPublisher<String, any Error>
    let general: AnyPublisher<String, any Error>
  }

  init<U: Publisher & Sendable, A: Publisher, B: Publisher>(
    _ name: String, overload: Int = 1, with detail: String = "",
    asCombine: [Int: [String]] = [:], over upstreams: [U], _ special: @escaping @Sendable (U) -> A,
    _ general: @escaping @Sendable (General<U>) -> B
  ) {
    self.name = name
    self.overload = overload
    self.detail = detail
    self.asCombine = asCombine
    pairs = {
      upstreams.map { upstream in
        let (special, general) = (special(upstream), general(General(upstream: upstream)))
        // An operator that isn't specialised differs only in its upstream.
        let hidden = String(reflecting: B.self).replacing(
          String(reflecting: General<U>.self), with: String(reflecting: U.self))
        return Pair(
          upstream: String(describing: upstream), isSpecialised: String(reflecting: A.self) != hidden,
          special: Self.erased(special), general: Self.erased(general))
      }
    }
  }

  private static func erased<P: Publisher>(_ publisher: P) -> AnyPublisher<String, any Error> {
    AnyPublisher(
      AnyPublisher(publisher).map { String(describing: $0) }.mapError { $0 as any Error })
  }

  var testDescription: String {
    "\(name)\(overload == 1 ? "" : ", overload \(overload)")\(detail.isEmpty ? "" : ", \(detail)")"
  }
}

extension SpecialisedCase {
  /// The output of a publisher without values.
  static let nothing: [String] = ["subscription", "finished"]
  /// The output of a publisher after a function has thrown.
  static let thrown = ["subscription", "failure(ReactiveTestSupport.Oops(number: 8))"]

  /// All specialised operators. `SpecialisedOperatorTests` compares the list with the module's sources.
  static let all = ofJust + ofOptional + ofResult + ofSequence
}

/// How a subscriber requests values, and when it cancels.
struct Schedule: CustomStringConvertible {
  var first: Subscribers.Demand?
  var perValue = Subscribers.Demand.none
  /// The number of values after which the subscriber cancels; 0 to cancel when it gets the subscription.
  var cancelsAfter: Int?
  /// Later requests, each in a separate step.
  var later: [Subscribers.Demand] = []
  /// The number of steps after which the subscription is cancelled from outside.
  var cancelledAfterStep: Int?

  static let all = [
    Schedule(first: .unlimited),
    Schedule(later: [.max(1), .max(1), .max(2), .unlimited]),
    Schedule(first: .max(1), perValue: .max(1)),
    Schedule(first: .max(1), later: [.max(1), .max(1), .max(1), .unlimited]),
    Schedule(first: .max(2), later: [.max(3), .unlimited]),
    Schedule(first: .unlimited, cancelsAfter: 0, later: [.unlimited]),
    Schedule(first: .unlimited, cancelsAfter: 1, later: [.unlimited]),
    Schedule(first: .unlimited, cancelsAfter: 2, later: [.unlimited]),
    Schedule(first: .max(1), later: [.unlimited, .max(1)], cancelledAfterStep: 0),
    Schedule(later: [.max(1), .unlimited], cancelledAfterStep: 1),
    Schedule(),
  ]

  var description: String {
    "first \(first as Any), per value \(perValue), cancels after \(cancelsAfter as Any), later \(later),"
      + " cancelled after step \(cancelledAfterStep as Any)"
  }

  /// The events of each step: the first is the subscription, with the first request.
  func run(_ publisher: AnyPublisher<String, any Error>) -> [[String]] {
    let subscriber = SteppedSubscriber(self)
    publisher.subscribe(subscriber)
    if cancelledAfterStep == 0 { subscriber.subscription?.cancel() }
    for (index, demand) in later.enumerated() {
      subscriber.steps.append([])
      subscriber.subscription?.request(demand)
      if cancelledAfterStep == index + 1 { subscriber.subscription?.cancel() }
    }
    return subscriber.steps
  }
}

private final class SteppedSubscriber: Subscriber {
  typealias Input = String
  typealias Failure = any Error

  let schedule: Schedule
  var subscription: (any Subscription)?
  var steps: [[String]] = [[]]
  private var count = 0

  init(_ schedule: Schedule) {
    self.schedule = schedule
  }

  func receive(subscription: any Subscription) {
    steps[steps.count - 1].append("subscription")
    self.subscription = subscription
    if schedule.cancelsAfter == 0 { return subscription.cancel() }
    if let first = schedule.first { subscription.request(first) }
  }

  func receive(_ input: String) -> Subscribers.Demand {
    steps[steps.count - 1].append(input)
    count += 1
    if schedule.cancelsAfter == count { subscription?.cancel() }
    return schedule.perValue
  }

  func receive(completion: Subscribers.Completion<any Error>) {
    steps[steps.count - 1].append(String(describing: completion))
  }
}
