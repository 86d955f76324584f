/// Decides when a connection checks its client's keep-alive.
///
/// A value: its owner sets the timer. A running timer isn't moved when the client sends: once it fires, the owner gets the current deadline from the session,
/// and sets the timer again. Only CONNECT makes the deadline earlier.
struct MQTTSilence {
  /// The step after the timer has fired.
  enum Look: Hashable {
    /// Set the timer again, by ``next(_:isOpen:isTimerSet:)``.
    case lookAnew
    /// Set the timer to that time, in nanoseconds.
    case wait(UInt64)
    /// Pass the time to the session.
    case tell
  }

  /// How long a client from which the connection doesn't read is exempt, in nanoseconds.
  static let patience: UInt64 = 1_000_000_000

  /// The time for which the timer was set.
  private var time: UInt64 = 0
  /// Whether CONNECT had been accepted at the last check.
  private var isAgreed: Bool
  /// False once it is known that there is no keep-alive limit.
  private var isLimited = true
  /// Whether the connection didn't read from the client when the timer last fired.
  private var looksAnew = false

  /// - Parameter isAgreed: whether CONNECT was accepted.
  init(isAgreed: Bool = false) { self.isAgreed = isAgreed }

  /// Whether the session's deadline is needed; usually it isn't.
  func needsLook(isTimerSet: Bool) -> Bool { !isAgreed || isLimited && !isTimerSet }

  /// Returns the new time for the timer; nil to leave it unchanged.
  ///
  /// - Parameters:
  ///   - deadline: when the client must have sent a packet; nil for no limit.
  ///   - isOpen: whether CONNECT was accepted.
  mutating func next(_ deadline: UInt64?, isOpen: Bool, isTimerSet: Bool) -> UInt64? {
    isAgreed = isOpen
    isLimited = deadline != nil || !isOpen
    guard let deadline, !isTimerSet || deadline < time else { return nil }
    time = deadline
    return deadline
  }

  /// The timer has fired. While the connection doesn't read from the client, it can't receive its packets, so the keep-alive is checked again after reading
  /// resumes.
  ///
  /// - Parameters:
  ///   - isRead: whether the connection reads from the client.
  ///   - isLimited: whether the session has a deadline.
  mutating func timerCame(isRead: Bool, isLimited: Bool, now: UInt64) -> Look {
    if looksAnew {
      looksAnew = false
      return .lookAnew
    }
    guard !isRead, isLimited else { return .tell }
    looksAnew = true
    time = now + Self.patience
    return .wait(time)
  }
}
