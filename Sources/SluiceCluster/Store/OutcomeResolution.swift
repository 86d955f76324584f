import SluiceNATS
import SluiceStore

/// Finds out what became of the commits that were sent when an answer is lost, or says something unexpected.
///
/// A failure is never followed by a blind repetition: a barrier is written, which expects the last sequence that is known. If it is stored, nothing of what was
/// sent is stored, or counts later. If it is refused, what is behind that sequence is read, and another barrier is written behind that.
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
    /// Nothing of what was sent is stored. The barrier has that sequence; nil when none was needed.
    case resume(barrier: UInt64?)
    /// Messages from that sequence on are to be read.
    case read(from: UInt64)
    /// Another barrier is to be written after a while; the error is to be reported.
    case retry(StoreError?)
  }

  /// What the commits that were sent come to.
  struct End: Hashable {
    /// Whether an error was reported.
    var wasDelayed: Bool
    /// Why there is no room for them; nil when they are to be sent again.
    var refusal: StoreError?
  }

  /// For messages.
  private let shard: String
  /// Why what was sent isn't stored.
  private var cause: NATSError?
  private var isDelayed = false

  /// - Parameter shard: the shard's name.
  init(shard: String) {
    self.shard = shard
  }

  /// It isn't known any more what is stored. Returns what is to be reported, and goes on with a barrier.
  mutating func begin(_ error: NATSError) -> StoreError? {
    cause = error
    if error.code == .resourcesExhausted || error.code == .wrongLastSequence { return nil }
    return delayed(error)
  }

  private mutating func delayed(_ error: NATSError) -> StoreError {
    isDelayed = true
    return StoreError(error, "shard \(shard) can't be written")
  }

  /// The engine has answered the barrier.
  ///
  /// - Parameters:
  ///   - result: the barrier's sequence.
  ///   - last: the last sequence of which everything is known by now.
  ///   - isAllRefused: whether everything that was sent was refused.
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

  /// Messages were read.
  ///
  /// - Parameters:
  ///   - result: how many more there are.
  ///   - end: the last sequence that was read.
  mutating func read(_ result: Result<UInt64, NATSError>, through end: UInt64) -> Action {
    switch result {
    case .success(0): .retry(nil)
    case .success: .read(from: end + 1)
    case .failure(let error): .retry(delayed(error))
    }
  }

  /// A message couldn't be understood.
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
