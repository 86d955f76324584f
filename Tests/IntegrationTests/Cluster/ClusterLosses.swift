import Glibc
import SluiceClient
import TestSupport

/// Takes parts of a cluster away under load, and measures how long it takes until records of all topics arrive again.
struct ClusterLosses {
  let stage: ClusterStage
  let load: ClusterLoad
  /// The longest duration of a cut, in seconds: longer than a lease and an election.
  private static let cut = 6.0
  /// In seconds. Longer than nodes tolerate a server of the engine that serves nothing.
  private static let patience = 60.0
  /// The shortest duration of a cut or a pause, in seconds: longer than a lease.
  private static let lease = 3.0

  /// - Parameters:
  ///   - number: the index of the node or the server of the engine.
  ///   - backlog: how many records each producer publishes meanwhile.
  func take(_ loss: ClusterLoss, _ number: Int, backlog: UInt64) async throws -> ClusterPause {
    load.allow(backlog)
    let (node, engine) = (stage.nodes[number], stage.engines[number])
    let start = ContinuousClock.now
    switch loss {
    case .killNode: node.signal(SIGKILL)
    case .killEngine: engine.signal(SIGKILL)
    case .stopNode: return try await stop(number)
    case .pauseNode: return try pauseAndWake(number)
    case .drainNode: return try await drain(node)
    case .killNodes: try kill(stage.nodes)
    case .killAll: try kill(stage.nodes + stage.engines)
    case .losePower:
      try stage.losePower()
      try stage.up()
    case .cutNode, .cutNodeFromNodes, .cutNodeFromEngine, .cutEngineServer, .cutSite, .loseToEngine,
      .loseFromEngine:
      return try cut(loss, number)
    case .rollNodes: return try await replaceNodes(from: number, backlog)
    case .rollEngine: return try replaceEngine(from: number, backlog)
    }
    return try awaitProgress(since: start, away: loss == .killNode ? number : nil)
  }

  /// Waits until records of all topics arrive in every way.
  private func awaitProgress(since start: ContinuousClock.Instant, away: Int? = nil) throws -> ClusterPause {
    var pause = ClusterPause(.first)
    let mark = load.mark()
    try require(
      try goesOn(&pause, behind: mark, since: start, away: away, within: 120),
      "topics don't go on within 120 s: \(pause)\n\(load.account(behind: mark))")
    return pause
  }

  /// Lets producers publish, and records when the topics continue, for each way. Returns false if one is still blocked after `seconds`.
  ///
  /// - Parameter end: the end of a cut that existed from the start, once it has ended.
  private func goesOn(
    _ pause: inout ClusterPause, behind mark: [UInt64], since start: ContinuousClock.Instant,
    cutUntil end: ContinuousClock.Instant? = nil, away: Int?, within seconds: Double
  ) throws -> Bool {
    load.allow(4)
    let deadline = Deadline(in: seconds)
    while true {
      for path in try load.progress(behind: mark, away: away) {
        pause.goesOn(path, after: self.seconds(since: start), afterCut: end.map { self.seconds(since: $0) })
      }
      if pause.missing.isEmpty { return true }
      if deadline.isOver { return false }
      TestSupport.pause(0.002)
    }
  }

  /// Kills the members, and restarts them.
  private func kill(_ members: [ClusterStage.Member]) throws {
    for member in members { member.signal(SIGKILL) }
    try eventually("\(members) have ended") { members.allSatisfy { !$0.isRunning } }
    try stage.up()
  }

  /// Stops a node in order. Returns once it has ended.
  private func stop(_ number: Int) async throws -> ClusterPause {
    let node = stage.nodes[number]
    let stops = stage.stops(of: node.name)
    return try await load.longestGaps(of: try await load.topics(of: node.name), away: number) {
      node.signal(SIGTERM)
      // It may still disconnect its clients.
      // Poll rarely: polling takes processor time from the measured processes.
      try eventually("\(node.name) has ended\(stage.logs)", every: 0.1) {
        stage.stops(of: node.name) > stops
      }
    }
  }

  private func drain(_ node: ClusterStage.Member) async throws -> ClusterPause {
    let moving = try await load.topics(of: node.name)
    let pause = try await load.longestGaps(of: moving, away: nil) {
      try await load.clients[0].drain(node: node.name)
      // Seldom: a process that looks takes the processors from what is measured.
      try eventually("\(node.name) has no shards\(stage.logs)", every: 0.5) {
        try stage.shards(of: node.name) == 0
      }
    }
    try await load.clients[0].undrain(node: node.name)
    return pause
  }

  private func pauseAndWake(_ number: Int) throws -> ClusterPause {
    let node = stage.nodes[number]
    let start = ContinuousClock.now
    node.signal(SIGSTOP)
    let result = Result { try awaitProgress(since: start, away: number) }
    // The others own its shards by now: it wakes up as a stale owner.
    while seconds(since: start) < Self.lease { pause(0.01) }
    node.signal(SIGCONT)
    return try result.get()
  }

  private func cut(_ loss: ClusterLoss, _ number: Int) throws -> ClusterPause {
    let cuts = loss.cuts(number, nodes: stage.nodes.map(\.name), engines: stage.engines.map(\.name))
    let start = ContinuousClock.now
    try stage.cut(cuts)
    // Nodes leave a server that has lost the others: all topics continue during the cut.
    let isServer = loss == .cutEngineServer
    let away = isServer ? nil : number
    let mark = load.mark()
    var result = ClusterPause(.first)
    let isOpenBefore = Result {
      try goesOn(
        &result, behind: mark, since: start, away: away, within: isServer ? Self.patience : Self.cut)
    }
    while seconds(since: start) < Self.lease { pause(0.01) }
    try stage.heal()
    if try isOpenBefore.get() { return result }
    try require(
      !isServer, "all topics go on without one server of the engine: \(result)\(load.account(behind: mark))")
    let isOpen = try goesOn(
      &result, behind: mark, since: start, cutUntil: .now, away: away, within: 120)
    try require(isOpen, "topics don't go on within 120 s: \(result)\n\(load.account(behind: mark))")
    return result
  }

  private func replaceNodes(from first: Int, _ backlog: UInt64) async throws -> ClusterPause {
    stage.changePrograms()
    var longest = ClusterPause(.gaps)
    for index in 0..<3 {
      load.allow(backlog)
      longest.extend(by: try await stop((first + index) % 3))
      try stage.up()
    }
    return longest
  }

  private func replaceEngine(from first: Int, _ backlog: UInt64) throws -> ClusterPause {
    var longest = ClusterPause(.first)
    for index in 0..<3 {
      try stage.awaitCopies()
      load.allow(backlog)
      let engine = stage.engines[(first + index) % 3]
      let start = ContinuousClock.now
      engine.signal(SIGTERM)
      longest.extend(by: try awaitProgress(since: start))
      try eventually("\(engine.name) has ended") { !engine.isRunning }
      try stage.up()
    }
    try stage.awaitCopies()
    return longest
  }

  private func seconds(since start: ContinuousClock.Instant) -> Double {
    (ContinuousClock.now - start).inSeconds
  }
}
