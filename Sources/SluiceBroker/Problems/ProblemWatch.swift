import SluiceIO
import SluiceTopics
import SluiceWire
import Synchronization

/// Finds the broker's problems for clients that request them, at most once a second.
///
/// Problems that show in counters of the last minute need an earlier search within that minute: for a client, by the broker's owner
/// (``Broker/lookForProblems()``), or by a periodic search that passes its results to ``tell(_:_:at:)``. From any thread.
final class ProblemWatch: Sendable {
  /// The most problems in an answer. With the longest names they take 30 KB.
  private static let told = 20
  private static let interval = Duration.seconds(1)
  /// How long results of a periodic search are used. On a busy machine, a search once a second may be late.
  private static let novelty = Duration.seconds(5)

  private struct State {
    var finder: ProblemFinder
    var found = FoundProblems()
    /// When `found` was found; nil before the first search.
    var time: MonotonicTime?
    /// The latest results of a periodic search, and when they were found.
    var told: (found: FoundProblems, time: MonotonicTime)?
    /// Whether a snapshot is being gathered, and the requests that wait for it.
    var isLooking = false
    var waiting: [@Sendable (FoundProblems) -> Void] = []
  }

  private let state: Mutex<State>

  init(_ limits: ProblemLimits) {
    state = Mutex(State(finder: ProblemFinder(limits)))
  }

  /// Returns the problems as clients get them.
  private static func found(_ problems: [Problem], _ kinds: [ProblemKind]) -> FoundProblems {
    FoundProblems(problems: Array(problems.prefix(told)), kinds: kinds)
  }

  /// Stores the results of a periodic search.
  func tell(_ problems: [Problem], _ kinds: [ProblemKind], at time: MonotonicTime) {
    let found = Self.found(problems, kinds)
    state.withLock { $0.told = (found, time) }
  }

  /// Calls `completion` once with the most urgent problems, either at once or on a loop of the broker.
  ///
  /// - Parameters:
  ///   - now: the time by the loop's clock.
  ///   - snapshot: gathers a snapshot of the broker, and this node's view of its cluster; nil for a broker of one node.
  ///   - completion: called with the problems.
  func problems(
    now: MonotonicTime,
    in snapshot: (SnapshotRequest, @escaping @Sendable (GatheredSnapshot, ClusterInfo?) -> Void) -> Void,
    _ completion: @escaping @Sendable (FoundProblems) -> Void
  ) {
    enum Step {
      case known(FoundProblems)
      case look
      case wait
    }
    let step = state.withLock { state -> Step in
      if let told = state.told, now - told.time < Self.novelty { return .known(told.found) }
      if let time = state.time, now - time < Self.interval, !state.isLooking { return .known(state.found) }
      state.waiting.append(completion)
      guard !state.isLooking else { return .wait }
      state.isLooking = true
      return .look
    }
    switch step {
    case .known(let found): completion(found)
    case .wait: break
    case .look:
      let request = SnapshotRequest(
        topics: 5_000, subscriptionsPerTopic: 3, publicationsPerTopic: 0, connections: 0, consumersPerTopic: 2
      )
      snapshot(request) { [self] in take($0.assembled(), $1, at: now) }
    }
  }

  private func take(_ snapshot: BrokerSnapshot, _ cluster: ClusterInfo?, at time: MonotonicTime) {
    let (found, waiting) = state.withLock { state in
      let problems = state.finder.problems(in: snapshot, cluster)
      state.found = Self.found(problems, state.finder.kinds)
      state.time = time
      state.isLooking = false
      return (state.found, state.waiting.take())
    }
    for completion in waiting { completion(found) }
  }
}

extension [@Sendable (FoundProblems) -> Void] {
  fileprivate mutating func take() -> Self {
    defer { self = [] }
    return self
  }
}

extension BrokerInfo.Problem {
  init(_ problem: Problem) {
    self.init(
      severity: Severity(problem.severity), since: UInt64(max(problem.since, 0)),
      sentence: problem.sentence, kind: problem.kind.rawValue, topic: problem.place.topic ?? "",
      consumer: problem.place.consumer ?? "", connection: problem.place.connection ?? 0)
  }
}

extension BrokerInfo.ProblemKind {
  init(_ kind: ProblemKind) {
    self.init(
      kind: kind.kind.rawValue, severity: BrokerInfo.Problem.Severity(kind.severity),
      since: UInt64(max(kind.since, 0)), count: UInt32(clamping: kind.count), sentence: kind.sentence)
  }
}

extension BrokerInfo.Problem.Severity {
  fileprivate init(_ severity: Problem.Severity) {
    self = severity == .critical ? .critical : .warning
  }
}
