import SluiceIO

extension ClusterStatus {
  init(
    _ control: ClusterControl, problems: [String], _ health: EngineHealth, isConnected: Bool, server: String,
    isUnsafe: Bool, at now: MonotonicTime
  ) {
    let directory = control.directory
    let placement = Placement(directory)
    let unreached = directory.unreached
    let owners = (0..<(directory.shardCount ?? 0)).map { directory.owner(of: $0) }
    name = control.name
    isMember = control.session.session != nil
    isSuspended = control.session.session != nil && !control.session.isValid(at: now)
    isEngineConnected = isConnected
    engineServer = server
    engineProblems = problems
    engineWarnings = isConnected ? health.warnings : []
    engineObstacle = health.obstacle
    let redundancy = isConnected ? health.redundancy : nil
    (engineCopies, currentEngineCopies) = (redundancy?.copies, redundancy?.current)
    nameHolder = control.nameHolder
    isEngineUnsafe = isUnsafe
    commitLatency = control.commitLatency
    nodes = directory.nodes.sorted { $0.key < $1.key }.map { name, entry in
      let state: Node.State =
        switch entry.record.state {
        case .ended: .ended
        // This node is live, whatever the state of its lease.
        case _ where name != control.name && entry.heard + control.silenceLimit < now: .silent
        case .leaving: .leaving
        case .live where unreached.contains(name): .unreached
        case .live: directory.drained.contains(name) ? .drained : .live
        }
      // Other nodes haven't had time to reach a node that has just joined.
      let isNew = now - entry.since < control.silenceLimit
      return Node(
        name: name, address: entry.record.address, version: entry.record.version, state: state,
        shards: owners.count { $0?.owner == name }, silence: now - entry.heard,
        problem: entry.isLive
          ? Self.problem(
            of: name, at: entry.record.address, because: control.peers.problem(of: name),
            isOwn: name == control.name, isUnreached: state == .unreached && !isNew) : nil)
    }
    shards = owners.enumerated().map { number, owner in
      Shard(
        number: number, state: owner.map { $0.state == .moving ? .moving : .held } ?? .free,
        owner: owner?.owner, term: directory.shards[number]?.record?.term ?? 0,
        target: placement.target(of: number), pin: directory.pins[number])
    }
  }

  /// Why a node can't be reached; nil if it can be reached, or that isn't known.
  private static func problem(
    of node: String, at address: String, because reason: String?, isOwn: Bool, isUnreached: Bool
  ) -> String? {
    let advice = "check its --advertise, and the network"
    if isOwn {
      return isUnreached
        ? "no other node reaches this node at \(address), so it gets no shards; \(advice)" : nil
    }
    guard let reason else {
      return isUnreached ? "no node has reached node \(node) at \(address) yet, so it gets no shards" : nil
    }
    return "node \(node) can't be reached at \(address): \(reason); "
      + (isUnreached ? "no node reaches it, so it gets no shards; \(advice)" : advice)
  }
}
