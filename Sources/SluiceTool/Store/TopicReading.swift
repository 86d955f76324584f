import Glibc
import ReactiveCore
import SluiceClient
import SluiceIO
import SluiceStore
import Synchronization

/// Reads a topic's records in pages, for a thread that may block.
///
/// Requests records only for the next page, and ends before records that are published meanwhile.
// Unchecked: `subscription` is used on the loop only; the rest is behind a mutex.
final class TopicReading: Subscriber, @unchecked Sendable {
  typealias Input = TopicEvent<TopicRecord>
  typealias Failure = ClientError

  private struct State {
    var records: [TopicRecord] = []
    /// Requested records that haven't arrived.
    var missing = 0
    /// Whether all records up to `end` have arrived.
    var isAtEnd = false
    var failure: String?
    var lagged: UInt64 = 0
  }

  private let client: Client
  private let loop: any EventLoop
  private let topic: String
  private let end: UInt64
  private let state = Mutex(State())
  private let arrived = Semaphore()
  private var subscription: (any Subscription)?

  /// - Parameter end: the offset before which reading ends.
  init(_ client: Client, on loop: any EventLoop, _ topic: String, upTo end: UInt64) {
    self.client = client
    self.loop = loop
    self.topic = topic
    self.end = end
  }

  // MARK: On the thread

  func begin() {
    var plan = SubscriptionPlan(topic, from: .earliest, lag: .skip)
    plan.ifMissing = .fail
    let reading = self
    loop.execute { [client, plan] in client.topic(plan).events.subscribe(reading) }
  }

  /// The next records, at most `count`; none at the end.
  ///
  /// - Throws: ``StoreError`` if the topic can't be read.
  func next(_ count: Int, _ job: StoreJob) throws(StoreError) -> [TopicRecord] {
    let isOver = state.withLock { state in
      if !state.isAtEnd { state.missing = count }
      return state.isAtEnd
    }
    if !isOver {
      loop.execute { [self] in subscription?.request(.max(count)) }
      while !job.isStopped, !state.withLock({ $0.missing <= 0 || $0.isAtEnd || $0.failure != nil }) {
        arrived.wait(milliseconds: 200)
      }
    }
    let (records, failure) = state.withLock { state in
      defer { state.records = [] }
      return (state.records, state.failure)
    }
    if let failure { throw StoreError(.failed, "topic \(topic): \(failure)") }
    return records
  }

  /// The number of records that the topic dropped while it was read.
  var lagged: UInt64 { state.withLock { $0.lagged } }

  func cancel() {
    loop.execute { [self] in
      subscription?.cancel()
      subscription = nil
    }
  }

  // MARK: On the loop

  func receive(subscription: any Subscription) {
    self.subscription = subscription
    let missing = state.withLock { $0.missing }
    if missing > 0 { subscription.request(.max(missing)) }
  }

  func receive(_ event: TopicEvent<TopicRecord>) -> Subscribers.Demand {
    let end = end
    let isWaiting = state.withLock { state in
      switch event {
      case .record(let record):
        if record.offset < end { state.records.append(record) }
        state.missing -= 1
        state.isAtEnd = state.isAtEnd || record.offset + 1 >= end
        return state.missing > 0 && !state.isAtEnd
      case .live: state.isAtEnd = true
      case .lagged(let missed, _): state.lagged += missed
      case .restarted: state.failure = "it was recreated while it was read; try again"
      case .rewound: state.failure = "its last records were lost while it was read; try again"
      case .producers, .topic: break
      }
      return !state.isAtEnd && state.failure == nil
    }
    if !isWaiting { arrived.signal() }
    // Events other than records also use up demand.
    if case .record = event { return .none }
    return .max(1)
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    state.withLock { state in
      switch completion {
      case .finished: state.isAtEnd = true
      case .failure(let error) where error.code == .topicFailed || error.code == .producerLost:
        state.isAtEnd = true
      case .failure(let error): state.failure = error.description
      }
    }
    arrived.signal()
  }
}
