import Glibc
import SluiceClient
import TestSupport

/// Takes parts of a cluster away under load, and measures how long it takes until all topics go on.
struct ClusterLosses {
  /// What was measured of one loss, in seconds.
  struct Pause: CustomStringConvertible {
    /// From the loss until all topics had gone on. Of a replacement of several processes, the longest.
    var all: Double
    /// From the end of a cut until all topics had gone on, for those that didn't while it lasted.
    var afterCut: Double?

    var description: String {
      let text = "all topics go on after \(Int(all * 1000)) ms"
      return afterCut.map { "\(text), \(Int($0 * 1000)) ms after the cut's end" } ?? text
    }
  }

  let stage: ClusterStage
  let load: ClusterLoad
  /// How long a cut lasts at most: longer than a lease and an election.
  private static let cut = 6.0
  /// Longer than nodes bear with a server of the engine that serves nothing.
  private static let patience = 60.0
  /// How long a cut and a pause last at least: longer than a lease.
  private static let lease = 3.0

  /// - Parameters:
  ///   - number: of the node or the server of the engine, from 0.
  ///   - backlog: how many records each producer publishes meanwhile.
  func take(_ loss: ClusterLoss, _ number: Int, backlog: UInt64) async throws -> Pause {
    load.allow(backlog)
    let (node, engine) = (stage.nodes[number], stage.engines[number])
    let start = ContinuousClock.now
    switch loss {
    case .killNode: node.signal(SIGKILL)
    case .killEngine: engine.signal(SIGKILL)
    case .stopNode: return Pause(all: try stop(node))
    case .pauseNode: return try pauseAndWake(node)
    case .drainNode:
      try await load.clients[0].drain(node.name)
      try load.awaitProgress()
      let taken = seconds(since: start)
      try eventually("\(node.name) has no shards\(stage.logs)") { try stage.shards(of: node.name) == 0 }
      try await load.clients[0].drain(node.name, false)
      return Pause(all: taken)
    case .killNodes: try kill(stage.nodes)
    case .killAll: try kill(stage.nodes + stage.engines)
    case .losePower:
      try stage.losePower()
      try stage.up()
    case .cutNode, .cutNodeFromNodes, .cutNodeFromEngine, .cutEngineServer, .cutSite, .loseToEngine,
      .loseFromEngine:
      return try cut(loss, number)
    case .rollNodes: return try replaceNodes(from: number, backlog)
    case .rollEngine: return try replaceEngine(from: number, backlog)
    }
    try load.awaitProgress()
    return Pause(all: seconds(since: start))
  }

  /// Ends them without warning, and starts them again.
  private func kill(_ members: [ClusterStage.Member]) throws {
    for member in members { member.signal(SIGKILL) }
    try eventually("\(members) have ended") { members.allSatisfy { !$0.isRunning } }
    try stage.up()
  }

  /// Stops a node in order. Returns the seconds until all topics had gone on; returns when it has ended.
  private func stop(_ node: ClusterStage.Member) throws -> Double {
    let start = ContinuousClock.now
    let stops = stage.stops(of: node.name)
    node.signal(SIGTERM)
    try load.awaitProgress()
    let taken = seconds(since: start)
    // It may still disconnect its clients.
    try eventually("\(node.name) has ended\(stage.logs)") { stage.stops(of: node.name) > stops }
    return taken
  }

  private func pauseAndWake(_ node: ClusterStage.Member) throws -> Pause {
    let start = ContinuousClock.now
    node.signal(SIGSTOP)
    let result = Result { try load.awaitProgress() }
    let taken = seconds(since: start)
    // The others have its shards by now: it wakes up as a stale owner.
    while seconds(since: start) < Self.lease { pause(0.01) }
    node.signal(SIGCONT)
    try result.get()
    return Pause(all: taken)
  }

  private func cut(_ loss: ClusterLoss, _ number: Int) throws -> Pause {
    let cuts = loss.cuts(number, nodes: stage.nodes.map(\.name), engines: stage.engines.map(\.name))
    let start = ContinuousClock.now
    try stage.cut(cuts)
    // Nodes leave a server that has lost the others: all topics go on while it has.
    let isServer = loss == .cutEngineServer
    let goesOn = Result { try load.goesOn(within: isServer ? Self.patience : Self.cut) }
    let taken = seconds(since: start)
    while seconds(since: start) < Self.lease { pause(0.01) }
    try stage.heal()
    if try goesOn.get() { return Pause(all: taken) }
    try require(!isServer, "all topics go on without one server of the engine\(stage.logs)")
    let end = ContinuousClock.now
    try load.awaitProgress()
    return Pause(all: seconds(since: start), afterCut: seconds(since: end))
  }

  private func replaceNodes(from first: Int, _ backlog: UInt64) throws -> Pause {
    stage.changePrograms()
    var longest = 0.0
    for index in 0..<3 {
      load.allow(backlog)
      longest = max(longest, try stop(stage.nodes[(first + index) % 3]))
      try stage.up()
    }
    return Pause(all: longest)
  }

  private func replaceEngine(from first: Int, _ backlog: UInt64) throws -> Pause {
    var longest = 0.0
    for index in 0..<3 {
      try stage.awaitCopies()
      load.allow(backlog)
      let engine = stage.engines[(first + index) % 3]
      let start = ContinuousClock.now
      engine.signal(SIGTERM)
      try load.awaitProgress()
      longest = max(longest, seconds(since: start))
      try eventually("\(engine.name) has ended") { !engine.isRunning }
      try stage.up()
    }
    try stage.awaitCopies()
    return Pause(all: longest)
  }

  private func seconds(since start: ContinuousClock.Instant) -> Double {
    let (seconds, attoseconds) = (ContinuousClock.now - start).components
    return Double(seconds) + Double(attoseconds) / 1e18
  }
}
