import ReactiveCore
import SluiceClient
import Synchronization

/// A publisher that records its subscribers and their requests. Safe from any thread.
///
/// Each subscription delivers its own messages, "0.0", "0.1" and so on: the numbers of the subscription and the message.
final class TestSource: Publisher, Sendable {
  typealias Output = Message
  typealias Failure = ClientError

  /// How many messages each subscription delivers by itself, on demand.
  let count: Int
  /// How it ends after them; nil if it doesn't.
  let ending: Subscribers.Completion<ClientError>?
  private let links = Mutex<[Link]>([])

  init(count: Int = 0, ending: Subscribers.Completion<ClientError>? = nil) {
    self.count = count
    self.ending = ending
  }

  /// All subscriptions so far.
  var all: [Link] { links.withLock { $0 } }

  /// The subscriptions that are neither cancelled nor ended.
  var active: [Link] { all.filter { !$0.isOver } }

  func receive<S: Subscriber>(subscriber: S) where S.Input == Message, S.Failure == ClientError {
    let link = links.withLock { links in
      let link = Link(self, number: links.count, AnySubscriber(subscriber))
      links.append(link)
      return link
    }
    subscriber.receive(subscription: link)
  }

  // @unchecked: the subscriber is safe from any thread, and mutable state is in the mutex.
  final class Link: Subscription, @unchecked Sendable {
    private struct State {
      var requested = Subscribers.Demand.none
      var given = 0
      var cancellations = 0
      var isOver = false
      var isGiving = false
    }

    private unowned let source: TestSource
    private let number: Int
    private let subscriber: AnySubscriber<Message, ClientError>
    private let state = Mutex(State())

    init(_ source: TestSource, number: Int, _ subscriber: AnySubscriber<Message, ClientError>) {
      self.source = source
      self.number = number
      self.subscriber = subscriber
    }

    var isOver: Bool { state.withLock { $0.isOver } }
    var requested: Subscribers.Demand { state.withLock { $0.requested } }
    var given: Int { state.withLock { $0.given } }
    var cancellations: Int { state.withLock { $0.cancellations } }

    func request(_ demand: Subscribers.Demand) {
      let mustGive = state.withLock { state in
        state.requested += demand
        defer { state.isGiving = true }
        return !state.isGiving
      }
      guard mustGive else { return }
      while let message = nextOwed() { _ = subscriber.receive(message) }
      if let ending = source.ending, given == source.count { end(ending) }
    }

    private func nextOwed() -> Message? {
      state.withLock { state in
        guard !state.isOver, state.given < source.count, state.requested > state.given else {
          state.isGiving = false
          return nil
        }
        state.given += 1
        return Message("\(number).\(state.given - 1)")
      }
    }

    func cancel() {
      state.withLock {
        $0.cancellations += 1
        $0.isOver = true
      }
    }

    /// Delivers a message regardless of demand, and even after cancellation.
    func give(_ message: Message) {
      state.withLock { $0.given += 1 }
      _ = subscriber.receive(message)
    }

    func end(_ completion: Subscribers.Completion<ClientError>) {
      let isFirst = state.withLock { state in
        defer { state.isOver = true }
        return !state.isOver
      }
      if isFirst { subscriber.receive(completion: completion) }
    }
  }
}
