import SluiceWire
import Synchronization

/// What a member has said of its records and the broker doesn't know yet. From any thread.
final class Settlements: Sendable {
  struct Run: Hashable, Sendable {
    var verdict: Settle.Verdict
    var delivery: UInt32
    var epoch: UInt64
    var first: UInt64
    var count: UInt32
  }

  private struct State {
    var runs: [Run] = []
    /// The loop knows that there is something to take.
    var isNoted = false
  }

  private let state = Mutex(State())

  /// Returns true when the loop must be told.
  func add(_ run: Run) -> Bool {
    state.withLock { state in
      if let last = state.runs.last, last.verdict == run.verdict, last.delivery == run.delivery,
        last.epoch == run.epoch, last.first + UInt64(last.count) == run.first, last.count < .max
      {
        state.runs[state.runs.count - 1].count += run.count
      } else {
        state.runs.append(run)
      }
      defer { state.isNoted = true }
      return !state.isNoted
    }
  }

  /// Takes what is about this life of the topic; the rest means nothing any more.
  func take(of epoch: UInt64) -> [Run] {
    state.withLock { state in
      defer { state = State() }
      return state.runs.filter { $0.epoch == epoch }
    }
  }

  /// There is no connection. That something is being worked on will be old when there is.
  func keep() {
    state.withLock { state in
      state.runs.removeAll { $0.verdict == .working }
      state.isNoted = false
    }
  }
}
