import ReactiveCore
import ReactiveTestSupport

/// A source of a few numbers for the tables of all operators.
///
/// It delivers its subscription and its numbers when the test calls `connect()` and `open()`, and never more numbers than the demand. Once open, it
/// delivers from within the call of `request(_:)`. The functions may be called from any thread.
final class TableSource: Publisher, @unchecked Sendable {
  typealias Output = Int
  typealias Failure = Oops

  // The lock guards the fields.
  private let lock = Lock()
  private var subscriber: AnySubscriber<Int, Oops>?
  private var connectsAtOnce: Bool
  private var isConnected = false
  private var isOpen = false
  private var isEnding = false
  private var isOver = false
  private var isDelivering = false
  private var numbers: [Int]
  private var owed = Subscribers.Demand.none
  private var total = Subscribers.Demand.none
  private var cancellations = 0

  init(connectsAtOnce: Bool, numbers: [Int] = [1, 2, 3]) {
    self.connectsAtOnce = connectsAtOnce
    self.numbers = numbers
  }

  /// The total demand on the source.
  var asked: Subscribers.Demand { lock.withLock { total } }

  var isCancelled: Bool { lock.withLock { cancellations > 0 } }

  var isSubscribed: Bool { lock.withLock { subscriber != nil } }

  func receive<S: Subscriber>(subscriber: S) where S.Input == Int, S.Failure == Oops {
    let connects = lock.withLock {
      self.subscriber = AnySubscriber(subscriber)
      isConnected = false
      return connectsAtOnce
    }
    if connects { connect() }
  }

  /// Delivers the subscription, now or to the next subscriber.
  func connect() {
    let target = lock.withLock {
      connectsAtOnce = true
      guard !isConnected, let subscriber else { return AnySubscriber<Int, Oops>?.none }
      isConnected = true
      return subscriber
    }
    target?.receive(
      subscription: ManualSubscription(
        onRequest: { [weak self] in self?.ask($0) }, onCancel: { [weak self] in self?.cancel() }))
    // An open source without further numbers ends without a request.
    deliver()
  }

  /// Delivers the numbers on demand.
  func open() {
    lock.withLock { isOpen = true }
    deliver()
  }

  /// Finishes after the numbers.
  func end() {
    lock.withLock { isEnding = true }
    deliver()
  }

  /// Sends events that may not be sent before a subscription.
  func sendTooEarly(_ completion: Subscribers.Completion<Oops>?) {
    let target = lock.withLock { isConnected ? nil : subscriber }
    if let completion {
      target?.receive(completion: completion)
    } else {
      _ = target?.receive(99)
    }
  }

  private func ask(_ demand: Subscribers.Demand) {
    lock.withLock {
      owed += demand
      total += demand
    }
    deliver()
  }

  private func cancel() {
    lock.withLock {
      cancellations += 1
      isOver = true
    }
  }

  private func deliver() {
    var more: Subscribers.Demand?
    while true {
      var target: AnySubscriber<Int, Oops>?
      var number: Int?
      lock.withLock {
        if let more {
          owed += more
          total += more
          isDelivering = false
        }
        guard isConnected, isOpen, !isOver, !isDelivering else { return }
        if owed > .none, !numbers.isEmpty {
          owed -= 1
          number = numbers.removeFirst()
          isDelivering = true
          target = subscriber
        } else if numbers.isEmpty, isEnding {
          isOver = true
          target = subscriber
        }
      }
      guard let target else { return }
      if let number {
        more = target.receive(number)
      } else {
        return target.receive(completion: .finished)
      }
    }
  }
}

extension [TableSource] {
  func open() {
    for source in self { source.open() }
  }

  func end() {
    for source in self { source.end() }
  }
}
