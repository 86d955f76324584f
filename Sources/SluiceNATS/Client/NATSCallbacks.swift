/// The functions that a client calls: those of requests and subscriptions by their numbers, those that hear of the connection, and those
/// that wait for room.
///
/// It calls none of them: a function may use the client, and with it this table.
struct NATSCallbacks {
  enum Answer {
    case one(NATSClient.Completion)
    case many((Result<NATSMessageView, NATSError>) -> NATSClient.Continuation)

    var isMany: Bool {
      if case .many = self { true } else { false }
    }

    /// The request has failed.
    func fail(_ error: NATSError) {
      switch self {
      case .one(let completion): completion(.failure(error))
      case .many(let handler): _ = handler(.failure(error))
      }
    }
  }

  struct Handler {
    let deliver: (NATSMessageView) -> Void
    let ended: (NATSError?) -> Void
  }

  /// By the numbers of requests.
  var answers: [UInt64: Answer] = [:]
  /// By the numbers of subscriptions.
  var handlers: [UInt64: Handler] = [:]
  private var waiting: [(most: Int, body: () -> Void)] = []
  private var observers: [UInt64: (Bool) -> Void] = [:]
  private var lastObserver: UInt64 = 0
  private var wasConnected = false

  /// Keeps what waits until the server has taken what stands before it: see ``NATSClient/whenBacklog(isAtMost:_:)``.
  mutating func wait(forBacklog most: Int, _ body: @escaping () -> Void) { waiting.append((most, body)) }

  /// Removes what has waited longest, if that doesn't wait any more at this backlog.
  mutating func takeWaiting(atBacklog bytes: Int) -> (() -> Void)? {
    guard let first = waiting.first, bytes <= first.most else { return nil }
    return waiting.removeFirst().body
  }

  /// Removes all that waits, which the caller releases.
  mutating func removeWaiting() -> [() -> Void] {
    defer { waiting = [] }
    return waiting.map(\.body)
  }

  mutating func observe(_ observer: @escaping (Bool) -> Void) -> UInt64 {
    lastObserver += 1
    observers[lastObserver] = observer
    return lastObserver
  }

  /// Removes an observer. The caller releases it: code that runs on the release may use the client.
  mutating func removeObserver(_ number: UInt64) -> ((Bool) -> Void)? {
    observers.removeValue(forKey: number)
  }

  /// Removes all observers, which the caller releases.
  mutating func removeObservers() -> [UInt64: (Bool) -> Void] {
    let all = observers
    observers = [:]
    return all
  }

  func observer(_ number: UInt64) -> ((Bool) -> Void)? { observers[number] }

  /// The numbers of the observers that are to hear, in order: none if nothing has changed for them.
  mutating func observers(toTell isConnected: Bool) -> [UInt64] {
    guard isConnected != wasConnected else { return [] }
    wasConnected = isConnected
    return observers.keys.sorted()
  }
}
