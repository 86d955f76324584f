import SluiceAdmin
import SluiceBroker
import SluiceCluster
import SluiceCommand
import SluiceIO
import SluiceNATS
import SluiceStore
import SluiceWire
import Synchronization

/// Counts and logs this node's events in its cluster. From any thread.
final class ClusterRecorder: Sendable {
  private struct State {
    var counts = ClusterSnapshot(
      ClusterInfo(
        name: "", unreadiness: "the node hasn't joined the cluster yet",
        engine: ClusterInfo.Engine(isConnected: false), nodes: [], shardCount: 0,
        shards: []), isLeaseValid: false)
    /// The objections to the engine that were logged last, so that each is logged once.
    var refusal: [String] = []
    /// The warnings about the engine's servers that were logged last.
    var engineWarnings: [EngineWarning] = []
    /// The problems of unreachable nodes that were logged last, by name.
    var unreachable: [String: String] = [:]
    var isInterrupted = false
  }

  /// The most take-overs for the admin listener.
  private static let listed = 20

  private let logger: Logger
  private let state = Mutex(State())

  init(_ logger: Logger) {
    self.logger = logger
  }

  /// The counters, with the last status.
  var snapshot: ClusterSnapshot { state.withLock { $0.counts } }

  /// Records the present status.
  @discardableResult
  func take(_ status: ClusterStatus) -> ClusterSnapshot {
    noteReach(status)
    noteEngine(status)
    return state.withLock { state in
      state.counts.info = ClusterInfo(status)
      state.counts.engineCopies = status.engineCopies
      state.counts.currentEngineCopies = status.currentEngineCopies
      state.counts.isLeaseValid = status.isMember && !status.isSuspended
      state.counts.take(status.commits)
      state.counts.info.numbers = state.counts.numbers
      return state.counts
    }
  }

  /// Logs new warnings about the engine's servers, and when all are resolved.
  private func noteEngine(_ status: ClusterStatus) {
    // Without a connection, missing warnings don't mean that the causes are resolved.
    guard status.isEngineConnected else { return }
    let former = state.withLock { state in
      defer { state.engineWarnings = status.engineWarnings }
      return state.engineWarnings
    }
    for warning in status.engineWarnings where !former.contains(where: { $0.id == warning.id }) {
      logger.log(.warning, "the engine has a problem", ["cause": .text(warning.text)])
    }
    if status.engineWarnings.isEmpty, !former.isEmpty {
      logger.log(.info, "the engine's servers are complete again")
    }
  }

  /// Logs nodes that can't be reached, and nodes that can be reached again.
  private func noteReach(_ status: ClusterStatus) {
    let problems = Dictionary(
      status.nodes.compactMap { node in node.problem.map { (node.name, $0) } }, uniquingKeysWith: { $1 })
    let former = state.withLock { state in
      defer { state.unreachable = problems }
      return state.unreachable
    }
    for (node, problem) in problems.sorted(by: { $0.key < $1.key }) where former[node] == nil {
      logger.log(
        .warning, "a node of the cluster can't be reached", ["node": .text(node), "cause": .text(problem)])
    }
    for node in former.keys.sorted() where problems[node] == nil {
      logger.log(.info, "a node of the cluster can be reached again, or has left", ["node": .text(node)])
    }
  }

  // MARK: Events

  func note(_ event: ClusterEvent) {
    switch event {
    case .joined(let session):
      logger.log(.info, "the node has joined the cluster", ["session": .number(session)])
    case .gained(let shard, let term):
      logger.log(
        .debug, "the node owns a shard, and opens it", ["shard": .number(shard), "term": .number(term)])
    case .closing(let shard, let term, let successor):
      state.withLock { $0.counts.handedOver += 1 }
      logger.log(
        .info, "the node hands a shard over",
        ["shard": .number(shard), "term": .number(term), "to": .textOrNull(successor)])
    case .lost(let shard, let term):
      state.withLock { $0.counts.lost += 1 }
      logger.log(
        .warning,
        "the node has lost a shard to another node, or with its lease; clients are sent to the new owner",
        ["shard": .number(shard), "term": .number(term)])
    case .takenOver(let takeOver): note(takeOver)
    case .suspended:
      state.withLock { $0.counts.suspensions += 1 }
      logger.log(
        .warning,
        "the lease couldn't be renewed in time: the node acknowledges nothing until it is renewed"
      )
    case .resumed:
      logger.log(.info, "the lease was renewed before another node took over: the node continues")
    case .expelled(let node):
      state.withLock { $0.counts.expulsions += 1 }
      logger.log(
        .warning,
        "another node has ended this node's session, because it was silent for too long; the node joins again",
        ["by": .textOrNull(node)])
    case .shardsKept(let count, let wanted):
      logger.log(
        .warning,
        "--cluster-shards is ignored: the cluster exists, and keeps its number of shards",
        ["shards": .number(count), "wanted": .number(wanted)])
    case .left: logger.log(.info, "the node has handed over all shards, and ended its session")
    case .refused(let objections): noteRefusal(objections)
    case .engineConnected(let server):
      state.withLock { $0.isInterrupted = false }
      logger.log(.info, "connected to the engine", ["server": .text(server)])
    case .engineInterrupted(let error):
      // Each attempt to reconnect may fail for the same reason.
      let isFirst = state.withLock { state in
        defer { state.isInterrupted = true }
        if !state.isInterrupted { state.counts.interruptions += 1 }
        return !state.isInterrupted
      }
      logger.log(
        isFirst ? .warning : .debug,
        "the connection to the engine is lost: publishing to durable topics is paused until it is back",
        ["cause": .text(error.description)])
    case .directoryChanged: break
    }
  }

  private func note(_ takeOver: TakeOver) {
    let (cause, from) = Self.cause(takeOver.cause)
    let milliseconds = UInt64(max(takeOver.duration.wholeMilliseconds, 0))
    let listed = ClusterSnapshot.TakeOver(
      shard: takeOver.shard, term: takeOver.term, cause: cause, from: from, milliseconds: milliseconds,
      time: WallTime.now)
    state.withLock { state in
      state.counts.causes[cause, default: 0] += 1
      state.counts.totalMilliseconds += milliseconds
      let bucket = ClusterSnapshot.bounds.firstIndex { milliseconds <= $0 } ?? 0
      state.counts.durations[bucket] += 1
      state.counts.recent = [listed] + state.counts.recent.prefix(Self.listed - 1)
    }
    logger.log(
      .info, "the node has taken a shard over",
      [
        "shard": .number(takeOver.shard), "term": .number(takeOver.term),
        "cause": .text(takeOver.cause.description), "ms": .number(milliseconds),
      ])
  }

  private static func cause(_ cause: TakeOver.Cause) -> (ClusterSnapshot.Cause, from: String) {
    switch cause {
    case .first: (.first, "")
    case .handedOver(let node): (.handedOver, node)
    case .died(let node): (.ownerDied, node)
    }
  }

  private func noteRefusal(_ objections: [String]) {
    let isNew = state.withLock { state in
      defer { state.refusal = objections }
      return state.refusal != objections
    }
    guard isNew else { return }
    for objection in objections {
      logger.log(
        .error,
        "the node doesn't join: the engine may lose acknowledged records; fix the engine, or accept that with --engine-unsafe",
        ["cause": .text(objection)])
    }
  }

  /// Logs an event of a shard's store.
  func note(_ shard: ShardID, _ event: StoreEvent) {
    let number: (key: String, value: JSON) = ("shard", .number(shard.rawValue))
    func log(_ level: LogLevel, _ message: String, _ more: [(key: String, value: JSON)] = []) {
      logger.log(level, message, fields: [number] + more)
    }
    switch event {
    case .opened(let topics, let bytes, _):
      log(.debug, "a shard is open", [("topics", .number(topics)), ("bytes", .number(bytes))])
    case .failed(let message, let isFull):
      log(
        .error,
        isFull
          ? "the engine is full: publishing to durable topics is paused; free space on its disks, or delete topics"
          : "the engine doesn't store: publishing to durable topics is paused until it does",
        [("cause", .text(message))])
    case .recovered: log(.info, "the engine stores again")
    case .waiting(let publishers, _, let isFull, let milliseconds):
      log(
        .error,
        isFull
          ? "the engine is still full: producers of durable topics are blocked"
          : "the engine still doesn't store: producers of durable topics are blocked",
        [("publishers", .number(publishers)), ("ms", .number(milliseconds))])
    case .fenced(let message):
      log(
        .warning, "another node stores the shard now; this node has stopped storing it",
        [("cause", .text(message))])
    case .rejected(let topic, let message):
      log(
        .error, "the engine refuses a change of a topic; the change is dropped",
        [("topic", .text(topic)), ("cause", .text(message))])
    case .damaged(let topic, let from, let before):
      log(
        .error, "stored records are damaged, and subscribers don't get them",
        [("topic", .text(topic)), ("from", .number(from)), ("before", .number(before))])
    case .wentBack(let topic, let from, let known):
      log(
        .warning,
        "the engine has lost records that a client has received, by a crash or a restored backup; the client continues at the first of them",
        [("topic", .text(topic)), ("from", .number(from)), ("before", .number(known))])
    case .lost(let topic, let message):
      log(
        .error, "a part of the stored data can't be read",
        [("topic", .text(topic)), ("cause", .text(message))])
    case .dropping(let topic, let limit):
      log(
        .debug, "a durable topic drops its oldest records because of a limit",
        [("topic", .text(topic)), ("limit", .text(limit.name))])
    case .closed(nil): log(.debug, "a shard is closed")
    case .closed(let message?):
      log(
        .warning,
        "a shard wasn't closed properly, as is normal for a former owner; its next owner reads the stored records",
        [("cause", .text(message))])
    }
  }
}

extension ClusterSnapshot {
  /// The most shards whose commit times are sent to clients, which keeps the answer short.
  private static let toldShards = 1_024

  fileprivate mutating func take(_ times: CommitTimes) {
    (commitBounds, commitCounts, commitTotal) = (CommitTimes.bounds, times.counts, times.total)
    commits = [:]
    for shard in info.shards where shard.owner == info.name {
      let number = Int(shard.number)
      guard let figures = times.shards[number] else { continue }
      commits[number] = Commits(count: figures.commits, recent: figures.recent, longest: figures.longest)
    }
  }

  /// The counters that are sent to clients.
  fileprivate var numbers: [BrokerInfo.Number] {
    let shards = commits.keys.sorted().prefix(Self.toldShards).map { shard in
      BrokerInfo.Number(
        name: ClusterInfo.shardCommitLatency(shard), value: (commits[shard]?.recent ?? 0) / 1_000)
    }
    return counters + shards
  }

  private var counters: [BrokerInfo.Number] {
    [
      ("take_overs", takeOvers), ("take_over_milliseconds", totalMilliseconds), ("hand_overs", handedOver),
      ("shards_lost", lost), ("suspensions", suspensions), ("expulsions", expulsions),
      ("engine_interruptions", interruptions), ("lease_valid", isLeaseValid ? 1 : 0),
      ("engine_copies", UInt64(engineCopies ?? 0)),
      ("engine_copies_current", UInt64(currentEngineCopies ?? 0)),
      ("commits", commitCounts.reduce(0, +)), ("commit_microseconds", commitTotal / 1_000),
    ].map { BrokerInfo.Number(name: $0, value: $1) }
  }
}

extension ClusterInfo {
  init(_ status: ClusterStatus) {
    self.init(
      name: status.name, unreadiness: status.unreadiness ?? "",
      engine: Engine(
        isConnected: status.isEngineConnected, isUnsafe: status.isEngineUnsafe, server: status.engineServer,
        commitLatency: status.commitLatency.map { UInt64(max($0.clampedNanoseconds / 1000, 0)) } ?? .max,
        problems: status.engineProblems + status.engineWarnings.map(\.text)),
      nodes: status.nodes.map(Node.init), shardCount: UInt32(status.shards.count),
      shards: status.shards.map(Shard.init))
  }
}

extension ClusterInfo.Node {
  fileprivate init(_ node: ClusterStatus.Node) {
    let state: State =
      switch node.state {
      case .live: .live
      case .leaving: .leaving
      case .drained: .drained
      case .ended: .ended
      case .silent: .silent
      case .unreached: .unreached
      }
    self.init(
      name: node.name, address: node.address, version: node.version, state: state,
      shards: UInt32(node.shards), silence: UInt64(max(node.silence.wholeMilliseconds, 0)),
      problem: node.problem ?? "")
  }
}

extension ClusterInfo.Shard {
  fileprivate init(_ shard: ClusterStatus.Shard) {
    let state: State =
      switch shard.state {
      case .held: .held
      case .moving: .moving
      case .free: .free
      }
    self.init(
      number: UInt32(shard.number), state: state, owner: shard.owner ?? "", term: shard.term,
      target: shard.target ?? "", pin: shard.pin ?? "")
  }
}
