import ReactiveCore
import SluiceClient

/// An event of a subscriber.
enum Heard: Equatable, CustomStringConvertible {
  case subscription
  case value(String)
  case live
  case lagged(UInt64)
  case restarted(UInt64)
  case rewound(UInt64)
  case producers(Int)
  case topic(String, TopicChange)
  case finished
  case failure(ClientError.Code)

  init(_ value: Any) {
    switch value {
    case let record as TopicRecord: self = .value(record.string)
    case let message as Message: self = .value(message.string)
    case let event as TopicEvent<TopicRecord>:
      switch event {
      case .record(let record): self = .value(record.string)
      case .live: self = .live
      case .lagged(let missed, _): self = .lagged(missed)
      case .restarted(let next): self = .restarted(next)
      case .rewound(let next): self = .rewound(next)
      case .producers(let count): self = .producers(count)
      case .topic(let name, let change): self = .topic(name, change)
      }
    default: self = .value("\(value)")
    }
  }

  var description: String {
    switch self {
    case .subscription: "subscription"
    case .value(let text): text
    case .live: "live"
    case .lagged(let missed): "lagged \(missed)"
    case .restarted(let next): "restarted at \(next)"
    case .rewound(let next): "rewound to \(next)"
    case .producers(let count): "\(count) producers"
    case .topic(let name, let change): "\(name) \(change)"
    case .finished: "finished"
    case .failure(let code): "failure \(code)"
    }
  }
}

/// A subscriber that records its events and requests values as the test says.
///
/// Used on one thread at a time.
final class Recorder<Input>: Subscriber, @unchecked Sendable {
  typealias Failure = ClientError

  var history: [Heard] = []
  var subscription: (any Subscription)?
  let initial: Subscribers.Demand
  /// Returns the additional demand for a value; may use the subscription.
  var answer: (Recorder, Input) -> Subscribers.Demand

  init(
    initial: Subscribers.Demand = .unlimited,
    _ answer: @escaping (Recorder, Input) -> Subscribers.Demand = { _, _ in .none }
  ) {
    self.initial = initial
    self.answer = answer
  }

  var values: [String] {
    history.compactMap { if case .value(let text) = $0 { text } else { nil } }
  }

  var completion: Heard? {
    switch history.last {
    case .finished, .failure: history.last
    default: nil
    }
  }

  func receive(subscription: any Subscription) {
    history.append(.subscription)
    self.subscription = subscription
    if initial > 0 { subscription.request(initial) }
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    history.append(Heard(input))
    return answer(self, input)
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    switch completion {
    case .finished: history.append(.finished)
    case .failure(let error): history.append(.failure(error.code))
    }
    subscription = nil
  }
}
