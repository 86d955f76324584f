import ReactiveCore
import SluiceClient

/// Waits for a topic to be created, without creating it: a subscription to a pattern that is the topic's name. It lasts across lost connections, until the
/// value is released.
// Unchecked: used on the client's loop only.
final class TopicWait: @unchecked Sendable {
  private var completion: ((Result<Void, ClientError>) -> Void)?
  private var subscription: (any Subscription)?

  /// - Parameter completion: called once, on the client's loop: when the topic exists, or with the error that ends the wait.
  init(_ topic: String, _ client: Client, _ completion: @escaping (Result<Void, ClientError>) -> Void) {
    self.completion = completion
    // Requests one event at a time, until one reports that a topic matches.
    let subscriber = AnySubscriber<TopicEvent<TopicRecord>, ClientError>(
      receiveSubscription: { [weak self] subscription in
        self?.subscription = subscription
        subscription.request(.max(1))
      },
      receiveValue: { [weak self] event in
        guard case .topic(_, .matched) = event else { return .max(1) }
        self?.complete(.success(()))
        return .none
      },
      receiveCompletion: { [weak self] completion in
        if case .failure(let error) = completion { self?.complete(.failure(error)) }
      })
    client.topics(matching: topic, from: .new).events.subscribe(subscriber)
  }

  deinit { subscription?.cancel() }

  private func complete(_ result: Result<Void, ClientError>) {
    subscription?.cancel()
    subscription = nil
    completion.take()?(result)
  }
}
