/// The callbacks of a client: those of requests and subscriptions by number, observers of the connection, and closures that wait for room in the output.
///
/// The table itself calls none of them, since a callback may use the client and with it this table.
struct NATSCallbacks {
  enum Answer {
    case one(NATSClient.Completion)
    case many((Result<NATSMessageView, NATSError>) -> NATSClient.Continuation)

    var isMany: Bool {
      if case .many = self { true } else { false }
    }

    /// Fails the request.
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

  /// By request number.
  var answers: [UInt64: Answer] = [:]
  /// By subscription number.
  var handlers: [UInt64: Handler] = [:]
  private var waiting: [(most: Int, body: () -> Void)] = []
  private var observers: [UInt64: (Bool) -> Void] = [:]
  private var lastObserver: UInt64 = 0
  private var wasConnected = false

  /// Adds a closure that waits for room in the output: see ``NATSClient/whenBacklog(isAtMost:_:)``.
  mutating func wait(forBacklog most: Int, _ body: @escaping () -> Void) { waiting.append((most, body)) }

  /// Removes and returns the closure that has waited longest, if it accepts this backlog.
  mutating func takeWaiting(atBacklog bytes: Int) -> (() -> Void)? {
    guard let first = waiting.first, bytes <= first.most else { return nil }
    return waiting.removeFirst().body
  }

  /// Removes all waiting closures and returns them, so that the caller releases them.
  mutating func removeWaiting() -> [() -> Void] {
    defer { waiting = [] }
    return waiting.map(\.body)
  }

  mutating func observe(_ observer: @escaping (Bool) -> Void) -> UInt64 {
    lastObserver += 1
    observers[lastObserver] = observer
    return lastObserver
  }

  /// Removes an observer and returns it, so that the caller releases it: code that runs on the release may use the client.
  mutating func removeObserver(_ number: UInt64) -> ((Bool) -> Void)? {
    observers.removeValue(forKey: number)
  }

  /// Removes all observers and returns them, so that the caller releases them.
  mutating func removeObservers() -> [UInt64: (Bool) -> Void] {
    let all = observers
    observers = [:]
    return all
  }

  func observer(_ number: UInt64) -> ((Bool) -> Void)? { observers[number] }

  /// The numbers of the observers to notify, in order; none if the state hasn't changed.
  mutating func observers(toTell isConnected: Bool) -> [UInt64] {
    guard isConnected != wasConnected else { return [] }
    wasConnected = isConnected
    return observers.keys.sorted()
  }
}
