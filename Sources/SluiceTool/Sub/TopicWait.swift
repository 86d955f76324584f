import ReactiveCore
import SluiceClient

/// The wait for a topic to be created, without creating it: a subscription to a pattern that is the topic's name. It lasts across lost connections and ends when
/// the value is released. Used on the client's loop only.
final class TopicWait {
  private let subscriber: FirstMatch

  /// - Parameter completion: called once, on the client's loop: when the topic exists, or with the reason why that can't be known any more.
  init(
    _ topic: String, _ client: Client, _ completion: @escaping (Result<Void, ClientError>) -> Void
  ) {
    subscriber = FirstMatch(completion)
    client.topics(matching: topic, from: .new).events.subscribe(subscriber)
  }

  deinit { subscriber.cancel() }
}

/// Asks for one event at a time, until one says that a topic matches.
// Unchecked: used on the client's loop only.
private final class FirstMatch: Subscriber, @unchecked Sendable {
  typealias Input = TopicEvent<TopicRecord>
  typealias Failure = ClientError

  private var completion: ((Result<Void, ClientError>) -> Void)?
  private var subscription: (any Subscription)?

  init(_ completion: @escaping (Result<Void, ClientError>) -> Void) {
    self.completion = completion
  }

  func receive(subscription: any Subscription) {
    self.subscription = subscription
    subscription.request(.max(1))
  }

  func receive(_ event: TopicEvent<TopicRecord>) -> Subscribers.Demand {
    guard case .topic(_, .matched) = event else { return .max(1) }
    complete(.success(()))
    return .none
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    if case .failure(let error) = completion { complete(.failure(error)) }
  }

  func cancel() {
    completion = nil
    subscription?.cancel()
    subscription = nil
  }

  private func complete(_ result: Result<Void, ClientError>) {
    let completion = completion
    cancel()
    completion?(result)
  }
}
