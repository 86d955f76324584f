import SluiceIO
import SluiceTopics
import Synchronization

/// Bounds the bytes buffered in the connections of all loops by closing the connection with the most, on any loop.
///
/// ```
///  a loop: the total is too large ──► search ──► every loop: its fullest connection
///                                       ▲                      │ after the last answer
///                                       └── still too large ◄── the loop of the fullest of all closes it
/// ```
///
/// One search runs at a time. From any thread.
final class BufferBound: Sendable {
  /// A loop keeps its context until it stops, and runs no jobs afterwards, so the context exists in every job of `loop`. With a weak reference, each
  /// retain of the context would take the runtime's slow path, several times per batch.
  private struct Member: Sendable {
    let loop: any EventLoop
    unowned let context: LoopContext

    func execute(_ job: @escaping @Sendable (LoopContext) -> Void) {
      loop.execute { [unowned context] in job(context) }
    }
  }

  private struct Candidate {
    var member: Member
    var connection: UInt64
    var bytes: Int

    /// Of two connections with equal buffers the older one counts as fuller, so that the choice doesn't depend on the order of answers.
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

  /// Adds a loop. Before the loop has any connection.
  func add(_ context: LoopContext) {
    state.withLock { $0.members.append(Member(loop: context.loop, context: context)) }
  }

  /// Begins a search when the total is above the limit and no search is running.
  func check() {
    guard metrics[.bufferedBytes] > limit else { return }
    let members = state.withLock { state -> [Member] in
      guard !state.isSearching else { return [] }
      state.isSearching = !state.members.isEmpty
      state.missing = state.members.count
      state.fullest = nil
      return state.members
    }
    for member in members {
      member.execute { [weak self] context in self?.answer(context, of: member) }
    }
  }

  /// On the loop of `context`, which is the context of `member`.
  private func answer(_ context: LoopContext, of member: Member) {
    let candidate = context.fullest.map {
      Candidate(member: member, connection: $0.connection, bytes: $0.bytes)
    }
    let (isLast, fullest) = state.withLock { state -> (Bool, Candidate?) in
      if let candidate, state.fullest.map(candidate.isFuller) ?? true { state.fullest = candidate }
      state.missing -= 1
      guard state.missing == 0 else { return (false, nil) }
      return (true, state.fullest.take())
    }
    guard isLast else { return }
    // Clients may have read their buffers meanwhile.
    guard let fullest, metrics[.bufferedBytes] > limit else { return end() }
    fullest.member.execute { [weak self] context in
      context.closeForBuffering(fullest.connection)
      guard let self else { return }
      end()
      check()
    }
  }

  private func end() {
    state.withLock { $0.isSearching = false }
  }
}
