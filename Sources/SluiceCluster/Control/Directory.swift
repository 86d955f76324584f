import SluiceIO

/// The last message of each subject of the stream `SLUICE_CTL` that this node knows, from the watch and from its own writes and reads.
struct Directory: Hashable, Sendable {
  private(set) var shardCount: Int?
  private(set) var nodes: [String: NodeEntry] = [:]
  private(set) var shards: [Int: ShardEntry] = [:]
  private(set) var drained: Set<String> = []
  /// The brokers that other nodes have reached, by their nodes' names.
  private(set) var reached: [String: ReachRecord] = [:]
  private(set) var pins: [Int: String] = [:]
  /// Whether each live node has been heard by now. A node of which nothing is known has been silent for at least a lease.
  var knowsAllLive = false
  private var sequences: [String: UInt64] = [:]

  /// The sequence of the last known message of a subject; 0 for none.
  func sequence(of subject: String) -> UInt64 { sequences[subject] ?? 0 }

  /// Applies a message, unless a later one of its subject is known.
  ///
  /// - Returns: whether it is new.
  mutating func apply(_ record: ControlRecord, _ sequence: UInt64, at now: MonotonicTime) -> Bool {
    guard sequence > self.sequence(of: record.subject) else { return false }
    sequences[record.subject] = sequence
    set(record, sequence, at: now)
    return true
  }

  /// Notes that the subject has no message, as its leader reports.
  mutating func clear(_ record: ControlRecord, at now: MonotonicTime) {
    sequences[record.subject] = 0
    // Only a message settles the number of shards.
    if case .cluster = record { return }
    set(record, 0, at: now)
  }

  private mutating func set(_ record: ControlRecord, _ sequence: UInt64, at now: MonotonicTime) {
    switch record {
    case .cluster(let record): shardCount = record.shards
    case .node(let name, let record):
      if let record {
        let known = nodes[name]
        let lastSign = record.endedBy == nil ? now : known?.lastSign ?? now
        let since = known?.record.writer == record.writer ? known?.since ?? now : now
        nodes[name] = NodeEntry(
          sequence: sequence, record: record, heard: now, lastSign: lastSign, since: since)
      } else if let known = nodes[name], known.isLive {
        // The engine removes messages that are old by its own clock: the node counts as live until this node's clock says otherwise. The removed message may
        // have been a renewal that this node hasn't seen, so the silence begins here at the earliest.
        nodes[name]?.heard = now
      } else {
        nodes[name] = nil
      }
    case .reach(let name, let record): reached[name] = record
    case .shard(let number, let record):
      shards[number] = ShardEntry(sequence: sequence, record: record, heard: now)
    case .drain(let name, let isWanted):
      if isWanted { drained.insert(name) } else { drained.remove(name) }
    case .pin(let number, let node): pins[number] = node
    }
  }

  // MARK: Reaching nodes

  /// Whether another node has reached the node's present broker at its address.
  func isReached(_ node: String) -> Bool {
    guard let broker = nodes[node]?.record.broker, broker != 0 else { return false }
    return reached[node]?.broker == broker
  }

  /// The live nodes that own no shards until another node has reached them.
  var unreached: Set<String> {
    let staying = staying
    guard staying.count > 1, checksReach else { return [] }
    return Set(staying.keys.filter { !isReached($0) })
  }

  /// The live nodes that aren't leaving.
  private var staying: [String: NodeEntry] { nodes.filter { $0.value.record.state == .live } }

  /// Whether the nodes check that they reach each other: nodes of earlier versions don't.
  private var checksReach: Bool { staying.values.allSatisfy { $0.record.broker != 0 } }

  /// The nodes that may own shards: those that another node has reached at their address. If there are none, the oldest live node, because a node without
  /// live peers can't be reached by one.
  var eligible: [String] {
    let staying = staying
    guard checksReach else { return Array(staying.keys) }
    let reached = staying.keys.filter(isReached)
    if !reached.isEmpty { return Array(reached) }
    return staying.min { $0.value.record.session < $1.value.record.session }.map { [$0.key] } ?? []
  }

  /// When the last of the live nodes joined. Nil once a node has been reached by another, or if only one node is live. Until then the nodes may be about to
  /// reach each other.
  var lastJoin: MonotonicTime? {
    let staying = staying
    guard staying.count > 1, checksReach, !staying.keys.contains(where: isReached) else { return nil }
    return staying.values.map(\.since).max()
  }

  // MARK: Looking up

  /// Whether a session is live as far as this node knows: unless a message on the node's subject says that it has ended.
  ///
  /// A missing message doesn't end a session. By its own clock, the engine may have removed the last message of a node that was paused and is about to send
  /// the next one. The engine refuses the next one only after a message that ends the session.
  func isLive(_ session: UInt64, of node: String) -> Bool {
    guard let entry = nodes[node] else { return true }
    if entry.record.session == session { return entry.isLive }
    return entry.sequence < session
  }

  /// The owner of a shard, even while it closes the shard; nil if the shard may be taken.
  func owner(of shard: Int) -> ShardRecord? {
    guard let record = shards[shard]?.record, record.state != .free, isLive(record.session, of: record.owner)
    else { return nil }
    return record
  }

  /// The last session of a node that this node knows: from the node's messages, or from those about its shards if they are later.
  func lastSession(of node: String) -> UInt64 {
    var last = nodes[node]?.record.session ?? 0
    for case let record? in shards.values.lazy.map(\.record) where record.owner == node {
      last = max(last, record.session)
    }
    return last
  }

  /// The node that is the shard's owner according to the stored records, although it is silent and none of its messages is left; nil for any other shard.
  func forgottenOwner(of shard: Int) -> ShardRecord? {
    guard knowsAllLive, let record = owner(of: shard), nodes[record.owner] == nil else { return nil }
    return record
  }

  /// Whether a shard without an owner waits for its next one: its owner died with it, or has given it up and is still live.
  func isWaiting(_ shard: Int) -> Bool {
    guard let record = shards[shard]?.record else { return false }
    return record.state != .free || isLive(record.session, of: record.owner)
  }
}
