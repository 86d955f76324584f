import ReactiveCore
import SluiceClient

/// Publishes numbered records to a topic, and tracks the acknowledged ones. Unchecked: a world is used by one thread.
final class NumberedProducer: @unchecked Sendable {
  let topic: String
  private(set) var sent = 0
  private(set) var acknowledged = 0
  private(set) var problems: [String] = []
  private let settings: TopicSettings
  private let id: UInt64?
  private var client: Client
  private var subject: TopicSubject
  /// Incremented by each restart of its process.
  private var life = 0

  /// - Parameter id: the producer ID, for a producer that can be restarted; nil for one that can't.
  init(_ topic: String, _ client: Client, _ settings: TopicSettings, id: UInt64? = nil) {
    self.topic = topic
    self.settings = settings
    self.id = id
    self.client = client
    subject = client.subject(topic, settings: settings, producer: id.map { .init(id: $0) })
  }

  func publish(_ count: Int) {
    for _ in 0..<count {
      sent += 1
      publish(number: sent - 1)
    }
  }

  private func publish(number: Int) {
    let life = life
    subject.publish(Message("\(number)")) { [self] result in
      // Ignore results of a former process.
      guard life == self.life else { return }
      switch result {
      case .success:
        if acknowledged != number { problems.append("\(number) is acknowledged before \(acknowledged)") }
        acknowledged = number + 1
      case .failure(let error):
        // Records of the former process may arrive after those of this one, through another node.
        if error.code == .producerFenced, life > 0 { return begin() }
        problems.append("\(number) has failed: \(error)")
      }
    }
  }

  /// Ends its process, and starts another one, which resends the unacknowledged records.
  func restart(with client: Client) {
    self.client.close()
    self.client = client
    begin()
  }

  private func begin() {
    guard let id else { return }
    life += 1
    subject = client.subject(
      topic, settings: settings, producer: .init(id: id, firstSequence: UInt64(acknowledged)))
    for number in acknowledged..<sent { publish(number: number) }
  }

  var isDone: Bool { acknowledged == sent }
}

/// Receives the numbered records of all topics that match a pattern, with bounded demand. Reports records that are missing, duplicated, out of order or
/// not requested.
final class NumberedPatternSubscriber: Subscriber, @unchecked Sendable {
  typealias Input = TopicRecord
  typealias Failure = ClientError

  /// The next number of each topic.
  private(set) var next: [String: Int] = [:]
  private(set) var problems: [String] = []
  /// The requested records that haven't arrived.
  private(set) var open = 0
  /// Nil for unlimited demand.
  private let demand: Int?
  private var subscription: (any Subscription)?

  /// - Parameter demand: how many records to request at a time; nil for unlimited.
  init(_ pattern: String, _ client: Client, demand: Int?) {
    self.demand = demand
    client.topics(matching: pattern, from: .earliest).subscribe(self)
  }

  func receive(subscription: any Subscription) {
    self.subscription = subscription
    ask()
  }

  /// Requests the next records once all requested ones have arrived.
  private func ask() {
    guard open == 0 else { return }
    open = demand ?? .max
    subscription?.request(demand.map { .max($0) } ?? .unlimited)
  }

  func receive(_ record: TopicRecord) -> Subscribers.Demand {
    if open == 0 { note("\(record.topic): \(record.string) came unasked") }
    if demand != nil { open -= 1 }
    let expected = next[record.topic, default: 0]
    if record.string != "\(expected)" {
      note("\(record.topic): \(record.string) came instead of \(expected) by the pattern")
    }
    next[record.topic] = (Int(record.string) ?? expected) + 1
    ask()
    return .none
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    note("the pattern has ended: \(completion)")
  }

  private func note(_ problem: String) {
    if problems.count < 5 { problems.append(problem) }
  }
}

/// Receives the numbered records of a topic. Reports records that are missing, duplicated or out of order.
final class NumberedSubscriber: @unchecked Sendable {
  let topic: String
  private(set) var next = 0
  private(set) var problems: [String] = []
  private var subscription: AnyCancellable?

  init(_ topic: String, _ client: Client) {
    self.topic = topic
    subscription = client.topic(topic, from: .earliest).sink { [unowned self] completion in
      problems.append("\(topic) has ended: \(completion)")
    } receiveValue: { [unowned self] record in
      take(record.string)
    }
  }

  private func take(_ text: String) {
    if text != "\(next)", problems.count < 5 { problems.append("\(topic): \(text) came instead of \(next)") }
    next = (Int(text) ?? next) + 1
  }
}
