import ReactiveCore
import SluiceClient
import TestSupport

/// A subscriber of any values that counts its demand and the values received.
// @unchecked: used only on the world's single thread.
final class CountingSubscriber: @unchecked Sendable {
  private let manner: UInt8
  private var asked = Subscribers.Demand.none
  private var received = 0
  private var subscription: (any Subscription)?
  private var isCancelled = false
  private var hasCompleted = false
  /// The offset of the last record, by topic.
  private var last: [String: UInt64] = [:]
  private(set) var violation: ProbeViolation?

  init(_ manner: UInt8) {
    self.manner = manner
  }

  var isOver: Bool { isCancelled || hasCompleted }

  /// Requests more, or cancels.
  func act(_ byte: UInt8) {
    guard let subscription, !isOver else { return }
    if byte == 0 {
      isCancelled = true
      return subscription.cancel()
    }
    let demand = byte == 0xFF ? Subscribers.Demand.unlimited : byte == 0xFE ? .max(.max) : .max(Int(byte))
    asked += demand
    subscription.request(demand)
  }

  func receive(subscription: any Subscription) {
    self.subscription = subscription
    let first: Subscribers.Demand = [.none, .max(1), .max(.max), .unlimited][Int(manner & 3)]
    guard first != .none else { return }
    asked += first
    subscription.request(first)
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    if isOver { violation = ProbeViolation("an end comes behind the end") }
    hasCompleted = true
  }

  fileprivate func receiveAny() -> Subscribers.Demand {
    received += 1
    if isOver || asked < received { violation = ProbeViolation("more comes than was asked for") }
    guard manner & 4 != 0, !isOver else { return .none }
    asked += .max(1)
    return .max(1)
  }
}

extension CountingSubscriber: Subscriber {
  typealias Input = Void
  typealias Failure = ClientError

  func receive(_ input: Void) -> Subscribers.Demand { receiveAny() }
}

extension Publisher where Output == TopicRecord, Failure == ClientError {
  /// Reads every property of each record.
  func feed(_ subscriber: CountingSubscriber) {
    map { record -> Void in
      _ = record.string
      _ = record.key
      _ = record.headers
      _ = record.time
      record.commit()
    }.subscribe(subscriber)
  }
}
