import ReactiveCore
import SluiceClient
import SluiceIO
import Testing

/// A subscriber that requests values in one of several ways, and checks each call against the rules.
///
/// Used on the single thread of a simulated world.
final class DemandingSubscriber<Input>: Subscriber, @unchecked Sendable {
  typealias Failure = ClientError

  /// How it requests more.
  enum Manner: CaseIterable {
    /// Once, unlimited.
    case unlimited
    /// Several at first, and one more for each value.
    case oneForOne
    /// A burst when the last one is used up, from within the value.
    case bursts
    /// The same through the subscription instead of the returned demand.
    case reentrant
    /// At times from outside, regardless of values.
    case fromOutside
  }

  let manner: Manner
  let window: Int
  private(set) var received: [Input] = []
  private(set) var completion: Subscribers.Completion<ClientError>?
  private(set) var subscription: (any Subscription)?
  private(set) var isCancelled = false
  /// Cancels itself on the value with this number.
  var cancelsAt: Int?
  private var requested = Subscribers.Demand.none
  private var isWithinValue = false

  init(_ manner: Manner, window: Int) {
    self.manner = manner
    self.window = window
  }

  func receive(subscription: any Subscription) {
    expect(self.subscription == nil, "one subscription")
    self.subscription = subscription
    request(manner == .unlimited ? .unlimited : .max(window))
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    expect(!isWithinValue, "values don't overlap")
    expect(!isCancelled, "nothing after cancel()")
    expect(completion == nil, "nothing after the end")
    expect(requested > received.count, "no more than was asked for")
    isWithinValue = true
    defer { isWithinValue = false }
    received.append(input)
    if received.count == cancelsAt {
      cancel()
      return .none
    }
    switch manner {
    case .unlimited, .fromOutside: return .none
    case .oneForOne: return note(.max(1))
    case .bursts: return requested == received.count ? note(.max(window)) : .none
    case .reentrant:
      if requested == received.count { request(.max(window)) }
      return .none
    }
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    expect(!isCancelled, "nothing after cancel()")
    expect(self.completion == nil, "one end")
    self.completion = completion
  }

  func cancel() {
    isCancelled = true
    subscription?.cancel()
  }

  /// Requests more from outside, like a timer of the subscriber.
  func poke(_ count: Int) {
    if manner == .fromOutside, !isCancelled { request(.max(count)) }
  }

  /// Calling `#expect` for every value would be too slow.
  private func expect(_ holds: Bool, _ rule: Comment) {
    if !holds { Issue.record(rule) }
  }

  private func request(_ demand: Subscribers.Demand) {
    _ = note(demand)
    subscription?.request(demand)
  }

  private func note(_ demand: Subscribers.Demand) -> Subscribers.Demand {
    requested += demand
    return demand
  }
}
