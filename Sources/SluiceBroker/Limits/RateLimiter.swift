import SluiceIO
import SluiceSession
import Synchronization

/// How many records and bytes a second one identity may publish, or be sent. Shared by the loops of its connections: one short lock.
final class RateLimiter: Sendable {
  private struct State {
    var records: TokenBucket?
    var bytes: TokenBucket?
  }

  /// A record counts for so many bytes where only bytes can be bounded in advance.
  private static let bytesPerRecord = 64.0

  private let state: Mutex<State>

  /// Nil when neither is limited.
  ///
  /// - Parameters: a second; 0 for any number.
  init?(records: Int, bytes: Int, at now: MonotonicTime) {
    guard records > 0 || bytes > 0 else { return nil }
    state = Mutex(
      State(
        records: records > 0 ? TokenBucket(perSecond: records, at: now) : nil,
        bytes: bytes > 0 ? TokenBucket(perSecond: bytes, at: now) : nil))
  }

  /// Takes of both, up to what is wanted.
  ///
  /// - Returns: nil when there is nothing of one that is wanted; nothing is taken then.
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

  /// Some of it wasn't used after all.
  func giveBack(_ rest: PublishingBudget.Allowance) {
    guard rest != PublishingBudget.Allowance() else { return }
    state.withLock { Self.giveBack(rest, &$0) }
  }

  private static func giveBack(_ rest: PublishingBudget.Allowance, _ state: inout State) {
    state.records?.giveBack(rest.records)
    state.bytes?.giveBack(rest.bytes)
  }

  /// So much was used that hadn't been taken.
  func spend(records: UInt64, bytes: UInt64) {
    guard records > 0 || bytes > 0 else { return }
    state.withLock { state in
      state.records?.spend(records)
      state.bytes?.spend(bytes)
    }
  }

  /// About how many bytes may be used now; 0 for none.
  func room(at now: MonotonicTime) -> Int {
    state.withLock { state in
      let bytes = state.bytes?.room(at: now) ?? .infinity
      let records = (state.records?.room(at: now) ?? .infinity) * Self.bytesPerRecord
      let room = min(bytes, records)
      return room < 1 ? 0 : Int(min(room, 1e15))
    }
  }

  /// How long until it is worth to try again. At least a millisecond.
  func wait(at now: MonotonicTime) -> Duration {
    state.withLock { state in
      max(state.records?.wait(at: now) ?? .zero, state.bytes?.wait(at: now) ?? .zero, .milliseconds(1))
    }
  }

  /// Whether nothing of it would be forgotten with it.
  func isFull(at now: MonotonicTime) -> Bool {
    state.withLock { state in
      _ = state.records?.room(at: now)
      _ = state.bytes?.room(at: now)
      return state.records?.isFull ?? true && state.bytes?.isFull ?? true
    }
  }
}
