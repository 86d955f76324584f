import SluiceIO
import SluiceWire

/// The steps by which a store's writer closes: it commits all waiting changes, waits for commits in progress for a limited time, then closes the store.
///
/// ```
///  open ── begin ──► closing ── next: await, at most so long … finish ──► closed
/// ```
struct StoreClosing {
  typealias Body = @Sendable () -> Void

  /// How long the writer waits for commits in progress.
  static let patience = Duration.seconds(10)

  private enum Phase {
    case open
    /// - Parameter isTimed: whether the timer for the end of the wait was started.
    case closing(Body, isTimed: Bool)
    case closed
  }

  /// The next step while the writer closes.
  enum Step: Hashable {
    /// Wait for the commits in progress.
    case await
    /// Wait likewise, and end the wait after ``patience``.
    case awaitAtMost
    /// No commits are in progress.
    case finish
  }

  /// The state in which the writer leaves the store.
  enum End: Hashable {
    /// The store is closed normally.
    case close
    /// The store is left as it is; `message` is the reason for the operator.
    case leave(message: String)
  }

  private var phase = Phase.open

  var isClosing: Bool { if case .closing = phase { true } else { false } }
  var isClosed: Bool { if case .closed = phase { true } else { false } }

  /// Begins to close.
  ///
  /// - Parameter body: called at the end.
  /// - Returns: false if the writer closes already.
  mutating func begin(_ body: @escaping Body) -> Bool {
    guard case .open = phase else { return false }
    phase = .closing(body, isTimed: false)
    return true
  }

  /// Returns the next step after all that can be committed was begun.
  ///
  /// - Parameter isSettled: whether no commits are in progress.
  mutating func next(isSettled: Bool) -> Step {
    if isSettled { return .finish }
    guard case .closing(let body, isTimed: false) = phase else { return .await }
    phase = .closing(body, isTimed: true)
    return .awaitAtMost
  }

  /// Ends the wait.
  ///
  /// - Parameters:
  ///   - refusal: why the store accepts no records; nil if it does.
  ///   - isSettled: whether the results of all commits are known.
  /// - Returns: the state in which to leave the store, and the body to call; nil if the wait has already ended.
  mutating func finish(refusal: Fault?, isSettled: Bool) -> (end: End, body: Body)? {
    guard case .closing(let body, _) = phase else { return nil }
    phase = .closed
    if let refusal { return (.leave(message: "\(refusal.message); what waited is lost"), body) }
    guard isSettled else {
      return (.leave(message: "the store doesn't say whether the last commits were stored"), body)
    }
    return (.close, body)
  }
}
