import ReactiveCore
import SluiceClient

/// A subscriber that requests records when the test calls it. Unchecked: a world is used by one thread.
final class RequestingReader: Subscriber, @unchecked Sendable {
  typealias Input = TopicRecord
  typealias Failure = ClientError

  private(set) var offsets: [UInt64] = []
  private(set) var completion: Subscribers.Completion<ClientError>?
  private var subscription: (any Subscription)?
  private let onRecord: ((TopicRecord) -> Void)?

  /// - Parameter onRecord: called with each record, after it was added to ``offsets``.
  init(_ topic: RemoteTopic<TopicRecord>, _ onRecord: ((TopicRecord) -> Void)? = nil) {
    self.onRecord = onRecord
    topic.subscribe(self)
  }

  func request(_ demand: Subscribers.Demand) { subscription?.request(demand) }

  func cancel() { subscription.take()?.cancel() }

  func receive(subscription: any Subscription) { self.subscription = subscription }

  func receive(_ record: TopicRecord) -> Subscribers.Demand {
    offsets.append(record.offset)
    onRecord?(record)
    return .none
  }

  func receive(completion: Subscribers.Completion<ClientError>) { self.completion = completion }
}
