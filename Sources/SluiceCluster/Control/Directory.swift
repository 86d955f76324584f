import SluiceIO

/// The last message of each subject of the stream `SLUICE_CTL`, as far as this node knows: from the watch, from its own writes and reads.
struct Directory: Hashable, Sendable {
  private(set) var shardCount: Int?
  private(set) var nodes: [String: NodeEntry] = [:]
  private(set) var shards: [Int: ShardEntry] = [:]
  private(set) var drained: Set<String> = []
  private(set) var pins: [Int: String] = [:]
  /// Each node that lives has been heard by now. One of which nothing is known has been silent for a lease at least.
  var knowsAllLive = false
  private var sequences: [String: UInt64] = [:]

  /// The sequence of the last known message of a subject; 0 for none.
  func sequence(of subject: String) -> UInt64 { sequences[subject] ?? 0 }

  /// Takes a message into account, unless a later one of its subject is known.
  ///
  /// - Returns: whether it is new.
  mutating func apply(_ record: ControlRecord, _ sequence: UInt64, at now: MonotonicTime) -> Bool {
    guard sequence > self.sequence(of: record.subject) else { return false }
    sequences[record.subject] = sequence
    set(record, sequence, at: now)
    return true
  }

  /// The subject has no message, as its leader says.
  mutating func clear(_ record: ControlRecord, at now: MonotonicTime) {
    sequences[record.subject] = 0
    // The number of shards is settled only by a message.
    if case .cluster = record { return }
    set(record, 0, at: now)
  }

  private mutating func set(_ record: ControlRecord, _ sequence: UInt64, at now: MonotonicTime) {
    switch record {
    case .cluster(let record): shardCount = record.shards
    case .node(let name, let record):
      if let record {
        let lastSign = record.endedBy == nil ? now : nodes[name]?.lastSign ?? now
        nodes[name] = NodeEntry(sequence: sequence, record: record, heard: now, lastSign: lastSign)
      } else if let known = nodes[name], known.isLive {
        // The engine removes what its own clock takes for old: the node lives until this node's clock says otherwise. What was removed may have been
        // a renewal that this node hasn't seen, so that the silence begins here at the earliest.
        nodes[name]?.heard = now
      } else {
        nodes[name] = nil
      }
    case .shard(let number, let record):
      shards[number] = ShardEntry(sequence: sequence, record: record, heard: now)
    case .drain(let name, let isWanted):
      if isWanted { drained.insert(name) } else { drained.remove(name) }
    case .pin(let number, let node): pins[number] = node
    }
  }

  // MARK: Looking up

  /// Whether a session goes on, as far as this node knows: unless a message on the node's subject says that it is over.
  ///
  /// That there is no message doesn't say so. The engine's clock may have removed the last one of a node that was paused and is about to send the
  /// next one: only a message that ends the session makes the engine refuse that.
  func isLive(_ session: UInt64, of node: String) -> Bool {
    guard let entry = nodes[node] else { return true }
    if entry.record.session == session { return entry.isLive }
    return entry.sequence < session
  }

  /// The owner of a shard, also while it closes it; nil when it may be taken.
  func owner(of shard: Int) -> ShardRecord? {
    guard let record = shards[shard]?.record, record.state != .free, isLive(record.session, of: record.owner)
    else { return nil }
    return record
  }

  /// The last session of a node of which this node knows: from its messages, or from those about its shards if they are later.
  func lastSession(of node: String) -> UInt64 {
    var last = nodes[node]?.record.session ?? 0
    for case let record? in shards.values.lazy.map(\.record) where record.owner == node {
      last = max(last, record.session)
    }
    return last
  }

  /// The node that still has a shard by what is stored, although it is silent and no message of it is left; nil for any other shard.
  func forgottenOwner(of shard: Int) -> ShardRecord? {
    guard knowsAllLive, let record = owner(of: shard), nodes[record.owner] == nil else { return nil }
    return record
  }

  /// Whether a shard without an owner waits for its next one: its owner died with it, or has given it up and still lives.
  func isWaiting(_ shard: Int) -> Bool {
    guard let record = shards[shard]?.record else { return false }
    return record.state != .free || isLive(record.session, of: record.owner)
  }
}
