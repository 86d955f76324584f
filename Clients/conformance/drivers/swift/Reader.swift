import Foundation
import PortableCombine
import SluiceClient
import Synchronization

/// A record in the form that a subscription delivers.
protocol Delivered: Sendable {
  var record: TopicRecord { get }
  /// Nil outside of groups.
  var attempt: Int? { get }
}

extension TopicRecord: Delivered {
  var record: TopicRecord { self }
  var attempt: Int? { nil }
}

extension Delivery: Delivered {
  var attempt: Int? { count }
}

/// A subscription of any kind, for the kit's commands.
protocol Reading: Sendable {
  func request(_ count: Int)
  func cancel()
  func commit(_ offset: UInt64) throws
  func settle(_ offset: UInt64, _ attempt: Int, _ verdict: String, after delay: Duration?) throws
}

/// A subscriber that reports its events, and whose demand is the number that the kit requests.
// @unchecked: the lock guards mutable state; all other members are constant.
final class Reader<Value: Delivered>: Subscriber, Reading, @unchecked Sendable {
  typealias Input = TopicEvent<Value>
  typealias Failure = ClientError

  private struct Place: Hashable {
    var offset: UInt64
    var attempt: Int
  }

  private struct State {
    var subscription: (any Subscription)?
    var taken: [Place: Value] = [:]
  }

  private let name: String
  /// Whether records are kept, to be settled or committed later.
  private let keeps: Bool
  private let lock = NSLock()
  private var state = State()

  init(_ name: String, keeps: Bool) {
    self.name = name
    self.keeps = keeps
  }

  // MARK: The kit's side

  func request(_ count: Int) {
    lock.withLock { state.subscription }?.request(.max(count))
  }

  func cancel() {
    lock.withLock { state.subscription.take() }?.cancel()
  }

  func commit(_ offset: UInt64) throws {
    try taken(offset, 0).record.commit()
  }

  func settle(_ offset: UInt64, _ attempt: Int, _ verdict: String, after delay: Duration?) throws {
    guard let delivery = try taken(offset, attempt) as? Delivery else {
      throw Mistake("\(name) isn't a member of a group")
    }
    switch verdict {
    case "ack": delivery.acknowledge()
    case "retry": delivery.retry(after: delay)
    case "reject": delivery.reject()
    case "extend": delivery.extend()
    default: throw Mistake("there is no verdict \(verdict)")
    }
  }

  private func taken(_ offset: UInt64, _ attempt: Int) throws -> Value {
    try lock.withLock { state.taken[Place(offset: offset, attempt: attempt)] }.given("record \(offset)")
  }

  // MARK: The client's side

  func receive(subscription: any Subscription) {
    lock.withLock { state.subscription = subscription }
  }

  func receive(_ event: TopicEvent<Value>) -> Subscribers.Demand {
    var line = Line(on: name)
    switch event {
    case .record(let value):
      report(value, &line)
      return .none
    case .live(let next): (line.event, line.next) = ("live", next)
    case .lagged(let missed, let next): (line.event, line.missed, line.next) = ("lag", missed, next)
    case .restarted: line.event = "restarted"
    case .rewound(let next): (line.event, line.next) = ("rewound", next)
    case .producers(let count): (line.event, line.count) = ("producers", count)
    case .topic(let topic, let change):
      line.topic = topic
      switch change {
      case .matched: line.event = "matched"
      case .lagged(let missed, let next): (line.event, line.missed, line.next) = ("lag", missed, next)
      case .restarted: line.event = "restarted"
      case .rewound(let next): (line.event, line.next) = ("rewound", next)
      case .deleted: line.event = "unmatched"
      // The kit requests none of these for a pattern's topics.
      case .live, .finished, .failed: return .max(1)
      }
    }
    line.write()
    // The event has used demand that was for a record.
    return .max(1)
  }

  private func report(_ value: Value, _ line: inout Line) {
    let record = value.record
    if keeps {
      lock.withLock { state.taken[Place(offset: record.offset, attempt: value.attempt ?? 0)] = value }
    }
    (line.event, line.topic, line.offset) = ("record", record.topic, record.offset)
    (line.time, line.attempt, line.payload) = (
      record.time.millisecondsSince1970, value.attempt ?? 0, Data(record.payload)
    )
    line.key = record.key.map { Data($0) }
    line.headers = record.headers.map(Line.Header.init)
    line.write()
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    lock.withLock { state.subscription = nil }
    var line = Line(on: name)
    switch completion {
    case .finished: line.event = "completed"
    case .failure(let error) where error.code == .topicFailed || error.code == .producerLost:
      (line.event, line.code, line.message) = ("failed", error.brokerCode, error.message)
    case .failure(let error):
      let failure = Line.Failure(error)
      (line.event, line.code, line.retry, line.message) = (
        "error", failure.code, failure.retry, failure.message
      )
    }
    line.write()
  }
}
