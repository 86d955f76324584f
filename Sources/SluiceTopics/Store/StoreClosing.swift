import SluiceIO
import SluiceWire

/// How a store's writer comes to its end: what waits is committed, and commits under way are awaited, for a time; then the store is closed.
///
/// ```
///  open ── begin ──► closing ── next: await, at most so long … finish ──► closed
/// ```
struct StoreClosing {
  typealias Body = @Sendable () -> Void

  /// How long commits under way are awaited.
  static let patience = Duration.seconds(10)

  private enum Phase {
    case open
    /// - Parameter isTimed: whether a timer for the end of the wait was asked for.
    case closing(Body, isTimed: Bool)
    case closed
  }

  /// What follows while the writer closes.
  enum Step: Hashable {
    /// Something is under way, which is awaited.
    case await
    /// The same, and the wait ends after ``patience``.
    case awaitAtMost
    /// Nothing is under way any longer.
    case finish
  }

  /// What becomes of the store.
  enum End: Hashable {
    /// It is closed in order.
    case close
    /// It is left as it is, and the operator is told why.
    case leave(message: String)
  }

  private var phase = Phase.open

  var isClosing: Bool { if case .closing = phase { true } else { false } }
  var isClosed: Bool { if case .closed = phase { true } else { false } }

  /// The writer is to close.
  ///
  /// - Parameter body: called at the end.
  /// - Returns: whether it does; not when it does already.
  mutating func begin(_ body: @escaping Body) -> Bool {
    guard case .open = phase else { return false }
    phase = .closing(body, isTimed: false)
    return true
  }

  /// Everything that may be committed is.
  ///
  /// - Parameter isSettled: whether nothing is under way.
  mutating func next(isSettled: Bool) -> Step {
    if isSettled { return .finish }
    guard case .closing(let body, isTimed: false) = phase else { return .await }
    phase = .closing(body, isTimed: true)
    return .awaitAtMost
  }

  /// Ends the wait.
  ///
  /// - Parameters:
  ///   - refusal: why the store takes no records; nil when it does.
  ///   - isSettled: whether it is known what became of all commits.
  /// - Returns: what becomes of the store, and what is called then; nil when that has happened already.
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
