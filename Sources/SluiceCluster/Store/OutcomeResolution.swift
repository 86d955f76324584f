import SluiceNATS
import SluiceStore

/// Resolves the results of commits when an answer is lost or unexpected.
///
/// A failed commit is never repeated blindly. First a barrier is written, which expects the last known sequence. If it is stored, none of the commits sent is
/// stored or will count. If it is refused, the messages behind that sequence are read, and another barrier is written behind them.
///
/// ```
///   begin ──► barrier ─┬─ stored ────────────────────────────► resume
///                ▲     ├─ refused for want of room, like all ─► resume
///                │     ├─ wrong last sequence ─► read ─┐
///                │     └─ failed ───────────────┐      │
///                └────────── retry, later ◄─────┴──────┘
/// ```
struct OutcomeResolution {
  enum Action: Hashable {
    /// None of the commits sent is stored. `barrier` is the barrier's sequence; nil if none was needed.
    case resume(barrier: UInt64?)
    /// Read the messages from that sequence on.
    case read(from: UInt64)
    /// Write another barrier after a while, and report the error.
    case retry(StoreError?)
  }

  /// The result for all commits that were sent.
  struct End: Hashable {
    /// Whether an error was reported.
    var wasDelayed: Bool
    /// Why there is no space for them; nil if they are to be sent again.
    var refusal: StoreError?
  }

  /// For messages.
  private let shard: String
  /// Why the commits sent aren't stored.
  private var cause: NATSError?
  private var isDelayed = false

  /// - Parameter shard: the shard's name.
  init(shard: String) {
    self.shard = shard
  }

  /// Begins the resolution, because it is unknown what is stored. Returns the error to report; a barrier follows.
  mutating func begin(_ error: NATSError) -> StoreError? {
    cause = error
    if error.code == .resourcesExhausted || error.code == .wrongLastSequence { return nil }
    return delayed(error)
  }

  private mutating func delayed(_ error: NATSError) -> StoreError {
    isDelayed = true
    return StoreError(error, "shard \(shard) can't be written")
  }

  /// Handles the engine's answer to the barrier.
  ///
  /// - Parameters:
  ///   - result: the barrier's sequence.
  ///   - last: the last sequence up to which all messages are known now.
  ///   - isAllRefused: whether all commits sent were refused.
  mutating func barrierAnswered(
    _ result: Result<UInt64, NATSError>, last: UInt64, isAllRefused: Bool
  ) -> Action {
    switch result {
    case .success(let sequence): .resume(barrier: sequence)
    case .failure(let error) where error.code == .wrongLastSequence: .read(from: last + 1)
    case .failure(let error) where error.code == .resourcesExhausted && isAllRefused: .resume(barrier: nil)
    case .failure(let error): .retry(delayed(error))
    }
  }

  /// Handles the messages that were read.
  ///
  /// - Parameters:
  ///   - result: the number of messages that remain.
  ///   - end: the last sequence that was read.
  mutating func read(_ result: Result<UInt64, NATSError>, through end: UInt64) -> Action {
    switch result {
    case .success(0): .retry(nil)
    case .success: .read(from: end + 1)
    case .failure(let error): .retry(delayed(error))
    }
  }

  /// Handles a message that couldn't be decoded.
  mutating func readFailed(_ fault: StoreError) -> Action {
    isDelayed = true
    return .retry(fault)
  }

  /// Ends with ``Action/resume(barrier:)``.
  mutating func end() -> End {
    let refusal = cause.flatMap { error in
      error.code == .resourcesExhausted || error.code == .payloadTooLarge
        ? StoreError(.full, "shard \(shard) has no room: \(error)") : nil
    }
    let end = End(wasDelayed: isDelayed, refusal: refusal)
    cause = nil
    isDelayed = false
    return end
  }
}
