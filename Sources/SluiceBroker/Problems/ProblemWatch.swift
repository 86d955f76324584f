import SluiceIO
import SluiceTopics
import SluiceWire
import Synchronization

/// Finds the broker's problems for clients that ask for them: at most once a second, however many ask.
///
/// Problems that show in counters of the last minute are found when clients have asked before within that minute. From any thread.
final class ProblemWatch: Sendable {
  /// Problems that are told. With the longest names they take 20 KB.
  private static let told = 10
  private static let interval = Duration.seconds(1)

  private struct State {
    var finder: ProblemFinder
    var problems: [Problem] = []
    /// When these were found; nil before the first time.
    var time: MonotonicTime?
    /// Whether a snapshot is under way, and what waits for it.
    var isLooking = false
    var waiting: [@Sendable ([Problem]) -> Void] = []
  }

  private let state: Mutex<State>

  init(_ limits: ProblemLimits) {
    state = Mutex(State(finder: ProblemFinder(limits)))
  }

  /// Calls `completion` once with the most urgent problems: at once, or on a loop of the broker.
  ///
  /// - Parameter snapshot: gathers a snapshot of the broker.
  func problems(
    now: MonotonicTime,
    in snapshot: (SnapshotRequest, @escaping @Sendable (GatheredSnapshot) -> Void) -> Void,
    _ completion: @escaping @Sendable ([Problem]) -> Void
  ) {
    enum Step {
      case known([Problem])
      case look
      case wait
    }
    let step = state.withLock { state -> Step in
      if let time = state.time, now - time < Self.interval, !state.isLooking { return .known(state.problems) }
      state.waiting.append(completion)
      guard !state.isLooking else { return .wait }
      state.isLooking = true
      return .look
    }
    switch step {
    case .known(let problems): completion(problems)
    case .wait: break
    case .look:
      let request = SnapshotRequest(
        topics: 5_000, subscriptionsPerTopic: 3, publicationsPerTopic: 0, connections: 0, consumersPerTopic: 2
      )
      snapshot(request) { [self] in take($0.assembled(), at: now) }
    }
  }

  private func take(_ snapshot: BrokerSnapshot, at time: MonotonicTime) {
    let (problems, waiting) = state.withLock { state in
      state.problems = Array(state.finder.problems(in: snapshot).prefix(Self.told))
      state.time = time
      state.isLooking = false
      return (state.problems, state.waiting.take())
    }
    for completion in waiting { completion(problems) }
  }
}

extension [@Sendable ([Problem]) -> Void] {
  fileprivate mutating func take() -> Self {
    defer { self = [] }
    return self
  }
}

extension BrokerInfo.Problem {
  init(_ problem: Problem) {
    self.init(
      severity: problem.severity == .critical ? .critical : .warning, since: UInt64(max(problem.since, 0)),
      sentence: problem.sentence)
  }
}
