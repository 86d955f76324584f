import ReactiveCore
import SluiceClient
import Synchronization

/// Counts records, checks their order, and measures how old they are.
// Unchecked: atomics and locks for what other threads look at, the rest on the client's loop.
final class BenchSubscriber: Subscriber, @unchecked Sendable {
  typealias Input = TopicRecord
  typealias Failure = ClientError

  private let client: Client
  private let demand: Int?
  private let count = Atomic<UInt64>(0)
  private let missing = Atomic<UInt64>(0)
  private let latencyIsMeasured = Atomic(false)
  private let end = Mutex<Subscribers.Completion<ClientError>?>(nil)
  private let times = Mutex(LatencyHistogram())
  private var next: UInt64 = 0

  /// - Parameter demand: see `BenchCommand.demand`.
  init(_ client: Client, demand: Int?) {
    self.client = client
    self.demand = demand
  }

  // MARK: From any thread

  var received: UInt64 { count.load(ordering: .relaxed) }
  /// Records that didn't come in their place.
  var gaps: UInt64 { missing.load(ordering: .relaxed) }
  var isOver: Bool { end.withLock { $0 != nil } }
  var histogram: LatencyHistogram { times.withLock { $0 } }

  var failure: ClientError? {
    end.withLock { if case .failure(let error)? = $0 { error } else { nil } }
  }

  var measuresLatency: Bool {
    get { latencyIsMeasured.load(ordering: .relaxed) }
    set { latencyIsMeasured.store(newValue, ordering: .relaxed) }
  }

  // MARK: On the loop

  func receive(subscription: any Subscription) {
    subscription.request(demand.map { .max($0) } ?? .unlimited)
  }

  func receive(_ record: TopicRecord) -> Subscribers.Demand {
    if record.offset != next { missing.add(record.offset &- next, ordering: .relaxed) }
    next = record.offset &+ 1
    if latencyIsMeasured.load(ordering: .relaxed) {
      let made = unsafe record.withUnsafeBytes {
        unsafe UInt64(littleEndian: $0.loadUnaligned(as: UInt64.self))
      }
      let now = MonotonicClock.now
      times.withLock { $0.add(now > made ? now - made : 0) }
    }
    // This thread alone writes it.
    count.store(count.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    return demand == nil ? .none : .max(1)
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    end.withLock { $0 = completion }
  }
}
