import SluiceIO
import SluiceSession
import SluiceTopics
import Synchronization

/// Limits the records and bytes per second that one identity may publish, or that the broker sends to it. The loops of its connections share it under
/// one short lock.
final class RateLimiter: Sendable {
  private struct State {
    var records: TokenBucket?
    var bytes: TokenBucket?
  }

  /// The bytes that a record counts as if only bytes can be bounded in advance.
  private static let bytesPerRecord = 64.0

  private let state: Mutex<State>

  /// Nil when neither is limited.
  ///
  /// - Parameters:
  ///   - records: records per second; 0 for any number.
  ///   - bytes: bytes per second; 0 for any number.
  init?(records: Int, bytes: Int, at now: MonotonicTime) {
    guard records > 0 || bytes > 0 else { return nil }
    state = Mutex(
      State(
        records: records > 0 ? TokenBucket(perSecond: records, at: now) : nil,
        bytes: bytes > 0 ? TokenBucket(perSecond: bytes, at: now) : nil))
  }

  /// Takes records and bytes, up to `wanted`.
  ///
  /// - Returns: nil when records or bytes are wanted and none are available; nothing is taken then.
  func take(_ wanted: PublishingBudget.Allowance, at now: MonotonicTime) -> PublishingBudget.Allowance? {
    state.withLock { state in
      let records = state.records?.take(wanted.records, at: now) ?? wanted.records
      let bytes = state.bytes?.take(wanted.bytes, at: now) ?? wanted.bytes
      let taken = PublishingBudget.Allowance(records: records, bytes: bytes)
      guard records > 0 || wanted.records == 0, bytes > 0 || wanted.bytes == 0 else {
        Self.giveBack(taken, &state)
        return nil
      }
      return taken
    }
  }

  /// Returns records and bytes that were taken and not used.
  func giveBack(_ rest: PublishingBudget.Allowance) {
    guard rest != PublishingBudget.Allowance() else { return }
    state.withLock { Self.giveBack(rest, &$0) }
  }

  private static func giveBack(_ rest: PublishingBudget.Allowance, _ state: inout State) {
    state.records?.giveBack(rest.records)
    state.bytes?.giveBack(rest.bytes)
  }

  /// Counts records and bytes that were used without being taken first.
  func spend(records: UInt64, bytes: UInt64) {
    guard records > 0 || bytes > 0 else { return }
    state.withLock { state in
      state.records?.spend(records)
      state.bytes?.spend(bytes)
    }
  }

  /// The approximate number of bytes that may be used now; 0 for none.
  func room(at now: MonotonicTime) -> Int {
    state.withLock { state in
      let bytes = state.bytes?.room(at: now) ?? .infinity
      let records = (state.records?.room(at: now) ?? .infinity) * Self.bytesPerRecord
      let room = min(bytes, records)
      return room < 1 ? 0 : Int(min(room, 1e15))
    }
  }

  /// The time after which the caller should try again; at least a millisecond.
  func wait(at now: MonotonicTime) -> Duration {
    state.withLock { state in
      max(state.records?.wait(at: now) ?? .zero, state.bytes?.wait(at: now) ?? .zero, .milliseconds(1))
    }
  }

  /// Whether the limiter is in its initial state, so that it can be dropped and created again later.
  func isFull(at now: MonotonicTime) -> Bool {
    state.withLock { state in
      _ = state.records?.room(at: now)
      _ = state.bytes?.room(at: now)
      return state.records?.isFull ?? true && state.bytes?.isFull ?? true
    }
  }
}

/// A token bucket that holds at most a quarter of a second's tokens. A value: the time is passed in.
///
/// Spending more tokens than the bucket contains leaves a debt.
struct TokenBucket: Sendable {
  private let rate: Double
  private let most: Double
  private var level: Double
  private var time: MonotonicTime

  /// A full bucket.
  ///
  /// - Parameter rate: tokens per second, at least 1.
  init(perSecond rate: Int, at time: MonotonicTime) {
    self.rate = Double(max(rate, 1))
    most = max(self.rate / 4, 1)
    level = most
    self.time = time
  }

  /// The tokens that may be used now; below zero for a debt.
  mutating func room(at now: MonotonicTime) -> Double {
    if now > time {
      level = min(most, level + Double((now - time).clampedNanoseconds) / 1e9 * rate)
      time = now
    }
    return level
  }

  /// Takes up to `wanted` tokens, and leaves half of the bucket for other callers; 0 when it is empty.
  mutating func take(_ wanted: UInt64, at now: MonotonicTime) -> UInt64 {
    let room = room(at: now)
    guard room >= 1 else { return 0 }
    let taken = min(Double(wanted), max(room / 2, 1).rounded(.down))
    level -= taken
    return UInt64(taken)
  }

  /// Takes tokens, also more than the bucket has.
  mutating func spend(_ count: UInt64) { level -= Double(count) }

  /// Returns tokens that were taken and not used.
  mutating func giveBack(_ count: UInt64) { level = min(most, level + Double(count)) }

  /// The time until the bucket is a quarter full.
  func wait(at now: MonotonicTime) -> Duration {
    let missing = max(most / 4, 1) - level
    return missing > 0 ? .seconds(min(missing / rate, 3600)) : .zero
  }

  var isFull: Bool { level >= most }
}
