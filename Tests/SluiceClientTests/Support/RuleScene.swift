import ReactiveCore
import SluiceBroker
import SluiceIO
import SluiceSimulation
import Testing

@testable import SluiceClient

/// A topic of a real broker on a simulated network, and a client that subscribes to it, for the tests of the Reactive Streams rules.
final class RuleScene {
  /// Whether the connection is reset while the subscription is active.
  enum Phase: CaseIterable, Sendable { case steady, reconnect }
  /// The kind of the topic's values.
  enum Kind: CaseIterable, Sendable { case records, decoded }

  struct Variant: CustomTestStringConvertible, Sendable {
    let phase: Phase
    let kind: Kind

    static let all = Phase.allCases.flatMap { phase in Kind.allCases.map { Variant(phase: phase, kind: $0) } }

    var testDescription: String { "\(phase), \(kind)" }
  }

  let variant: Variant
  let stage: Stage
  /// The subscribers' client, and one for everything else, whose connection stays up.
  private(set) var client: Client
  let other: Client
  let subject: TopicSubject

  init(_ variant: Variant) throws {
    self.variant = variant
    stage = try Stage()
    other = try stage.client("other")
    subject = other.subject("t")
    client = try stage.persistentClient("subscribers")
  }

  func settle() { stage.world.run(for: .seconds(1)) }

  /// In the reconnect phase, resets the connection and waits until it is restored.
  func disturb() throws {
    settle()
    guard variant.phase == .reconnect else { return }
    // The subscribers' connection is the newest.
    let connection = try #require(stage.world.network.connections.last)
    connection.reset()
    let isBack = stage.world.run(limit: .seconds(60)) { [stage] in
      stage.world.network.connections.last.map { $0.number > connection.number } ?? false
    }
    #expect(isBack)
    settle()
  }

  /// Publishes the next `count` numbers, starting from 0.
  func publish(_ count: Int) throws {
    for _ in 0..<count { subject.send(Message("\(subject.acceptedCount)")) }
    try stage.wait(subject.flush(completion:))
    settle()
  }

  func end(_ completion: Subscribers.Completion<ClientError> = .finished) throws {
    try stage.wait { subject.complete(completion, completion: $0) }
    settle()
  }

  func subscribe(_ subscriber: RuleSubscriber) {
    switch variant.kind {
    case .records: client.topic("t", from: .earliest).subscribe(RecordAdapter(subscriber))
    case .decoded: client.topic("t", from: .earliest).decoded { $0.string }.subscribe(subscriber)
    }
  }

  /// Closes the client, which ends its subscriptions.
  func closeClient() {
    client.close()
    settle()
  }

  /// The number of subscriptions at the broker.
  func subscriptions() throws -> Int {
    try stage.wait { other.topicInfo("t", completion: $0) }.subscriptions.count
  }

  /// The number of records that the broker has sent to each subscription.
  func sent() throws -> [UInt64] {
    try stage.wait { other.topicInfo("t", completion: $0) }.subscriptions.map(\.sent).sorted()
  }
}

/// A subscriber that checks each call against the rules and requests values as the test says.
// @unchecked: used only on the thread of a simulated world.
final class RuleSubscriber: Subscriber, @unchecked Sendable {
  typealias Input = String
  typealias Failure = ClientError

  /// All signals, in order.
  private(set) var signals: [String] = []
  private(set) var values: [String] = []
  private(set) var completion: Subscribers.Completion<ClientError>?
  private(set) var subscription: (any Subscription)?
  /// The total demand.
  private(set) var requested = Subscribers.Demand.none
  private(set) var isCancelled = false
  /// The violations of the rules.
  private(set) var violations: [String] = []
  /// The number of signals in progress, and its maximum.
  private(set) var depth = 0
  private(set) var deepest = 0

  private let first: Subscribers.Demand
  private let answer: (RuleSubscriber, String) -> Subscribers.Demand

  /// - Parameters:
  ///   - first: the first demand.
  ///   - answer: returns the additional demand for a value; may use the subscription.
  init(
    _ first: Subscribers.Demand,
    _ answer: @escaping (RuleSubscriber, String) -> Subscribers.Demand = { _, _ in .none }
  ) {
    self.first = first
    self.answer = answer
  }

  func receive(subscription: any Subscription) {
    hear("subscription") {
      if self.subscription != nil { violations.append("a second subscription") }
      self.subscription = subscription
      if first > .none { request(first) }
    }
  }

  func receive(_ value: String) -> Subscribers.Demand {
    var more = Subscribers.Demand.none
    hear("value") {
      if subscription == nil { violations.append("a value before the subscription") }
      values.append(value)
      if requested < values.count {
        violations.append("value \(values.count) where \(requested) were requested")
      }
      more = answer(self, value)
      requested += more
    }
    return more
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    hear("completion") {
      if subscription == nil { violations.append("an end before the subscription") }
      self.completion = completion
    }
  }

  func request(_ demand: Subscribers.Demand) {
    requested += demand
    subscription?.request(demand)
  }

  func cancel() {
    subscription?.cancel()
    isCancelled = true
  }

  /// Releases its subscription, as subscribers do at the end.
  func release() { subscription = nil }

  private func hear(_ signal: String, _ body: () -> Void) {
    if depth > 0 { violations.append("a \(signal) within another signal") }
    if isCancelled { violations.append("a \(signal) after cancel()") }
    if completion != nil { violations.append("a \(signal) after the end") }
    signals.append(signal)
    depth += 1
    deepest = max(deepest, depth)
    body()
    depth -= 1
  }
}

/// Passes records on as text, call by call.
private struct RecordAdapter: Subscriber {
  typealias Input = TopicRecord
  typealias Failure = ClientError

  let combineIdentifier = CombineIdentifier()
  let subscriber: RuleSubscriber

  init(_ subscriber: RuleSubscriber) { self.subscriber = subscriber }

  func receive(subscription: any Subscription) { subscriber.receive(subscription: subscription) }
  func receive(_ record: TopicRecord) -> Subscribers.Demand { subscriber.receive(record.string) }
  func receive(completion: Subscribers.Completion<ClientError>) { subscriber.receive(completion: completion) }
}
