import SluiceIO

extension ClusterStatus {
  init(
    _ control: ClusterControl, problems: [String], isConnected: Bool, server: String, isUnsafe: Bool,
    at now: MonotonicTime
  ) {
    let directory = control.directory
    let placement = Placement(directory)
    let owners = (0..<(directory.shardCount ?? 0)).map { directory.owner(of: $0) }
    name = control.name
    isMember = control.session.session != nil
    isSuspended = control.session.session != nil && !control.session.isValid(at: now)
    isEngineConnected = isConnected
    engineServer = server
    engineProblems = problems
    isEngineUnsafe = isUnsafe
    commitLatency = control.commitLatency
    nodes = directory.nodes.sorted { $0.key < $1.key }.map { name, entry in
      let state: Node.State =
        switch entry.record.state {
        case .ended: .ended
        // This node lives, whatever its lease is.
        case _ where name != control.name && entry.heard + control.silenceLimit < now: .silent
        case .leaving: .leaving
        case .live: directory.drained.contains(name) ? .drained : .live
        }
      return Node(
        name: name, address: entry.record.address, version: entry.record.version, state: state,
        shards: owners.count { $0?.owner == name }, silence: now - entry.heard)
    }
    shards = owners.enumerated().map { number, owner in
      Shard(
        number: number, state: owner.map { $0.state == .moving ? .moving : .held } ?? .free,
        owner: owner?.owner, term: directory.shards[number]?.record?.term ?? 0,
        target: placement.target(of: number), pin: directory.pins[number])
    }
  }
}
