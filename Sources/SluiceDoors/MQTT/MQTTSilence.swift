/// When a connection looks at its client's silence.
///
/// A value: its owner sets the timer. A timer that is set isn't moved for what the client sends: once its time has come, the owner learns from the session
/// until when the client may be silent, and sets it again. Only CONNECT brings a time that is nearer.
struct MQTTSilence {
  /// What a timer that has come is about.
  enum Look: Hashable {
    /// To be set again, by ``next(_:isOpen:isTimerSet:)``.
    case lookAnew
    /// To be set to that time, in nanoseconds.
    case wait(UInt64)
    /// The session is told the time.
    case tell
  }

  /// How long a client that isn't read is left alone, in nanoseconds.
  static let patience: UInt64 = 1_000_000_000

  /// What the timer was set to.
  private var time: UInt64 = 0
  /// Whether CONNECT was accepted when the session was last asked.
  private var isAgreed: Bool
  /// False once it is known that the client may be silent for ever.
  private var isLimited = true
  /// Whether the client wasn't read when the timer came last.
  private var looksAnew = false

  /// - Parameter isAgreed: whether CONNECT was accepted.
  init(isAgreed: Bool = false) { self.isAgreed = isAgreed }

  /// Whether the session has to be asked for its deadline: mostly it hasn't.
  func needsLook(isTimerSet: Bool) -> Bool { !isAgreed || isLimited && !isTimerSet }

  /// What the timer is to be set to, in place of what it was; nil where it stays.
  ///
  /// - Parameters:
  ///   - deadline: until when the client may be silent; nil for ever.
  ///   - isOpen: whether CONNECT was accepted.
  mutating func next(_ deadline: UInt64?, isOpen: Bool, isTimerSet: Bool) -> UInt64? {
    isAgreed = isOpen
    isLimited = deadline != nil || !isOpen
    guard let deadline, !isTimerSet || deadline < time else { return nil }
    time = deadline
    return deadline
  }

  /// The timer's time has come. A client that isn't read can't be heard: once it is read again, its silence is looked at anew.
  ///
  /// - Parameters:
  ///   - isRead: whether the client is read.
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
