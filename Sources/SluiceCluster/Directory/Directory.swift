import SluiceIO

/// The last message of each subject of the stream `SLUICE_CTL`, as far as this node knows: from the watch, from its own writes and reads.
struct Directory: Hashable, Sendable {
  private(set) var shardCount: Int?
  private(set) var nodes: [String: NodeEntry] = [:]
  private(set) var shards: [Int: ShardEntry] = [:]
  private(set) var drained: Set<String> = []
  private(set) var pins: [Int: String] = [:]
  /// The last message of each subject is known, as of this sequence. Of some subjects later ones are known.
  var completeUpTo: UInt64 = 0
  /// A node of which nothing is known doesn't live.
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
        nodes[name]?.sequence = sequence
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

  /// Whether a session goes on, as far as this node knows: unless it is known to be over.
  func isLive(_ session: UInt64, of node: String) -> Bool {
    if let entry = nodes[node], entry.sequence >= session {
      return entry.isLive && entry.record.session == session
    }
    // It is newer than what is known of its node.
    if session > completeUpTo { return true }
    // The engine may have removed the last message of a node that is about to send the next one.
    return nodes[node] == nil && !knowsAllLive
  }

  /// The owner of a shard, also while it closes it; nil when it may be taken.
  func owner(of shard: Int) -> ShardRecord? {
    guard let record = shards[shard]?.record, record.state != .free, isLive(record.session, of: record.owner)
    else { return nil }
    return record
  }

  /// Whether a shard without an owner waits for its next one: its owner died with it, or has given it up and still lives.
  func isWaiting(_ shard: Int) -> Bool {
    guard let record = shards[shard]?.record else { return false }
    return record.state != .free || isLive(record.session, of: record.owner)
  }
}
