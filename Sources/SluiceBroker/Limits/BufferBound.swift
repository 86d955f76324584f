import SluiceIO
import Synchronization

/// Bounds what waits in the connections of all loops together, by closing the connection in which the most waits, on whichever loop it is.
///
/// ```
///  a loop: the total is too large ──► search ──► every loop: its fullest connection
///                                       ▲                      │ the last answer
///                                       └── still too large ◄── the loop of the fullest of all closes it
/// ```
///
/// One search runs at a time. From any thread.
final class BufferBound: Sendable {
  private struct Member: Sendable {
    weak var context: LoopContext?
  }

  private struct Candidate {
    var context: LoopContext
    var connection: UInt64
    var bytes: Int

    /// Of two connections with equally much the older one goes, so that the choice doesn't depend on which loop answers first.
    func isFuller(than other: Candidate) -> Bool {
      (bytes, other.connection) > (other.bytes, connection)
    }
  }

  private struct State {
    var members: [Member] = []
    var isSearching = false
    /// Loops that haven't answered yet.
    var missing = 0
    var fullest: Candidate?
  }

  /// In bytes.
  private let limit: Int
  private let metrics: BrokerMetrics
  private let state = Mutex(State())

  init(limit: Int, metrics: BrokerMetrics) {
    self.limit = limit
    self.metrics = metrics
  }

  /// A loop whose connections count. Before the loop has any.
  func add(_ context: LoopContext) {
    state.withLock { $0.members.append(Member(context: context)) }
  }

  /// Begins a search when the total is above the limit and none is under way.
  func check() {
    guard metrics[.bufferedBytes] > limit else { return }
    let contexts = state.withLock { state -> [LoopContext] in
      guard !state.isSearching else { return [] }
      let contexts = state.members.compactMap(\.context)
      state.isSearching = !contexts.isEmpty
      state.missing = contexts.count
      state.fullest = nil
      return contexts
    }
    for context in contexts {
      context.loop.execute { [weak self, weak context] in
        if let self, let context { answer(context) }
      }
    }
  }

  /// On the loop of `context`.
  private func answer(_ context: LoopContext) {
    let candidate = context.fullest.map {
      Candidate(context: context, connection: $0.connection, bytes: $0.bytes)
    }
    let (isLast, fullest) = state.withLock { state -> (Bool, Candidate?) in
      if let candidate, state.fullest.map(candidate.isFuller) ?? true { state.fullest = candidate }
      state.missing -= 1
      guard state.missing == 0 else { return (false, nil) }
      return (true, state.fullest.take())
    }
    guard isLast else { return }
    // What waited may have been read meanwhile.
    guard let fullest, metrics[.bufferedBytes] > limit else { return end() }
    fullest.context.loop.execute { [weak self, weak context = fullest.context] in
      context?.closeForBuffering(fullest.connection)
      guard let self else { return }
      end()
      check()
    }
  }

  private func end() {
    state.withLock { $0.isSearching = false }
  }
}
