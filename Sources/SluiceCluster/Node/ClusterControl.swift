import SluiceIO
import SluiceStore

/// What a node of a cluster decides, as a value: messages, outcomes and times come in, requests and events come out.
///
/// It joins leases, the directory and placement: which of its messages are due is derived from what the directory has, again after each event.
struct ClusterControl {
  enum Action {
    case write(ControlWrite)
    /// Ask the stream's leader for the last message of the record's subject.
    case read(UInt64, ControlRecord)
    case event(ClusterEvent)
  }

  let name: String
  private let options: ClusterOptions
  private let times: LeaseTimes
  private let writer: UInt64
  private(set) var directory = Directory()
  private(set) var session: NodeSession
  /// Of the shards that the node takes part in.
  private(set) var leases: [Int: ShardLeaseState] = [:]
  /// Where shards belong; nil until it is found again after a node, a drain or a pin has changed.
  private var placement: (current: Placement, own: Set<Int>)?
  /// Whether a shard may have to be taken, moved or given back. False while the node holds exactly what belongs to it and nothing about that changes.
  private var areShardsDue = true
  /// The turn of this node among those that may call another one silent, by that node's name.
  private var ranks: [String: Int64] = [:]
  private(set) var commitLatency: Duration?
  /// When the engine has last answered a write or a read; nil before it has.
  private(set) var lastAnswer: MonotonicTime?
  private var requests: ControlRequests
  /// Since when the watch has been current; nil while it isn't.
  private var watchedSince: MonotonicTime?
  /// Since when this node's own lease has been valid.
  private var validSince: MonotonicTime?
  /// Until when this node takes no other shards than those that a dead or living node has left to it; nil once that time is over.
  private var waitingUntil: MonotonicTime?
  /// Where shards came from that the broker is opening.
  private var origins: [Int: (cause: TakeOver.Cause, since: MonotonicTime)] = [:]
  /// Shards that the broker couldn't open, and when they may be taken again.
  private var refused: [Int: MonotonicTime] = [:]
  private var actions: [Action] = []
  private var changed: Set<Int> = []
  /// Whether another node has come, has gone or has another address since the last event.
  private var haveNodesChanged = false
  /// What a test has broken, so that its oracle must notice.
  var flaw = ClusterFlaw.none

  init(_ options: ClusterOptions, writer: UInt64) {
    self.options = options
    name = options.name
    times = options.times
    self.writer = writer
    session = NodeSession(writer: writer, times: options.times)
    requests = ControlRequests(retry: options.times.retry)
  }

  /// The actions that were decided on since the last call.
  mutating func takeActions(at now: MonotonicTime) -> [Action] {
    decide(at: now)
    if !changed.isEmpty || haveNodesChanged {
      actions.append(.event(.directoryChanged(shards: changed.sorted())))
      (changed, haveNodesChanged) = ([], false)
    }
    defer { actions = [] }
    return actions
  }

  // MARK: What happens

  /// The last message of each subject follows. Until then, what is known of different subjects isn't of the same time.
  mutating func watchBegan() {
    watchedSince = nil
  }

  /// Whether the directory is known up to now.
  var isWatching: Bool { watchedSince != nil }

  /// Whether a message or a question is under way or waits for its next try.
  var isAsking: Bool { !requests.areIdle }

  mutating func watchCurrent(at now: MonotonicTime) {
    watchedSince = now
  }

  /// A message that is stored: one of the watch, an own one whose outcome has come, or one that was asked for.
  mutating func observed(_ record: ControlRecord, _ sequence: UInt64, at now: MonotonicTime) {
    let former = Former(record, directory)
    guard directory.apply(record, sequence, at: now) else { return }
    learned(record, former, at: now)
  }

  mutating func finished(_ number: UInt64, _ outcome: WriteOutcome, at now: MonotonicTime) {
    guard let (write, sent) = requests.finished(number, outcome, at: now) else { return }
    if outcome != .notStored, outcome != .unknown { lastAnswer = now }
    guard case .stored(let sequence) = outcome else { return }
    commitLatency = now - sent
    // The record as it is read back, with its own sequence where that counts.
    let record =
      ControlRecord(subject: write.record.subject, payload: write.record.payload, sequence: sequence)
      ?? write.record
    observed(record, sequence, at: now)
  }

  mutating func read(_ number: UInt64, _ outcome: ReadOutcome, at now: MonotonicTime) {
    if outcome != .failed { lastAnswer = now }
    guard let record = requests.read(number, outcome, knowing: directory, at: now) else { return }
    switch outcome {
    case .failed: break
    case .found(let record, let sequence): observed(record, sequence, at: now)
    case .none:
      let former = Former(record, directory)
      directory.clear(record.absent, at: now)
      learned(record.absent, former, at: now)
    }
  }

  /// The broker has opened a shard.
  mutating func opened(_ shard: Int, term: UInt64, at now: MonotonicTime) {
    guard leases[shard]?.opened(term) == true else { return }
    changed.insert(shard)
    guard let origin = origins.removeValue(forKey: shard) else { return }
    tell(
      .takenOver(TakeOver(shard: shard, term: term, cause: origin.cause, duration: now - origin.since)))
  }

  /// The broker has closed a shard, or couldn't open it.
  mutating func closed(_ shard: Int, term: UInt64, at now: MonotonicTime) {
    guard leases[shard]?.term == term else { return }
    areShardsDue = true
    if leases[shard]?.isHeld == true { refused[shard] = now + .seconds(1) }
    leases[shard]?.closed(term)
  }

  mutating func leave() { session.isLeaving = true }

  private mutating func tell(_ event: ClusterEvent) { actions.append(.event(event)) }

  // MARK: What follows from a message

  /// What the directory had on a message's subject.
  private struct Former {
    var node: NodeEntry?
    var shard: ShardEntry?

    init() {}

    init(_ record: ControlRecord, _ directory: Directory) {
      switch record {
      case .node(let name, _): node = directory.nodes[name]
      case .shard(let number, _): shard = directory.shards[number]
      default: break
      }
    }
  }

  private mutating func learned(_ record: ControlRecord, _ former: Former, at now: MonotonicTime) {
    switch record {
    case .node(name, let record): apply(session.observed(record, at: now), at: now)
    case .shard(let shard, let record):
      var lease = leases[shard] ?? ShardLeaseState()
      let changes = lease.observed(record, writer: writer, session: session.session)
      leases[shard] = lease.term == nil ? nil : lease
      if !changes.isEmpty { areShardsDue = true }
      apply(changes, to: shard, former, at: now)
    default: break
    }
    noteChanges(record, former)
  }

  private mutating func noteChanges(_ record: ControlRecord, _ former: Former) {
    switch record {
    case .shard(let shard, _): changed.insert(shard)
    case .drain, .pin, .cluster: placement = nil
    case .node(let node, _):
      let entry = directory.nodes[node]
      if former.node?.record.state != entry?.record.state { placement = nil }
      if ranks[node] == nil { ranks[node] = Int64(ShardHash.hash("\(name) \(node)") % 8) }
      if node != name, former.node?.liveAddress != entry?.liveAddress { haveNodesChanged = true }
      guard
        former.node?.record.session != entry?.record.session || former.node?.isLive != entry?.isLive
      else { return }
      for (shard, entry) in directory.shards where entry.record?.owner == node { changed.insert(shard) }
    }
  }

  private mutating func apply(_ changes: [NodeSession.Change], at now: MonotonicTime) {
    if !changes.isEmpty { areShardsDue = true }
    for change in changes {
      switch change {
      case .joined(let session):
        validSince = now
        waitingUntil = now + times.initialDelay
        tell(.joined(session: session))
      case .suspended:
        validSince = nil
        tell(.suspended)
      case .resumed:
        validSince = now
        tell(.resumed)
      case .lost(let node):
        validSince = nil
        loseAll(at: now)
        tell(.expelled(by: node))
      case .left:
        loseAll(at: now)
        tell(.left)
      }
    }
  }

  private mutating func loseAll(at now: MonotonicTime) {
    let lost = leases.sorted { $0.key < $1.key }
    leases = [:]
    for (shard, var lease) in lost { apply(lease.lose(), to: shard, Former(), at: now) }
  }

  private mutating func apply(
    _ changes: [ShardLeaseState.Change], to shard: Int, _ former: Former, at now: MonotonicTime
  ) {
    for change in changes {
      switch change {
      case .gained(let term):
        origins[shard] = origin(former.shard, at: now)
        tell(.gained(shard: shard, term: term))
      case .closing(let term, let successor): tell(.closing(shard: shard, term: term, successor: successor))
      case .lost(let term):
        origins[shard] = nil
        tell(.lost(shard: shard, term: term))
      case .released: origins[shard] = nil
      }
    }
  }

  private func origin(_ former: ShardEntry?, at now: MonotonicTime) -> (
    cause: TakeOver.Cause, since: MonotonicTime
  ) {
    guard let former, let record = former.record else { return (.first, now) }
    if record.state == .free { return (.handedOver(from: record.owner), former.heard) }
    return (.died(record.owner), directory.nodes[record.owner]?.lastSign ?? former.heard)
  }

  // MARK: What is due

  private mutating func decide(at now: MonotonicTime) {
    if flaw != .noClock { apply(session.expire(at: now), at: now) }
    for read in requests.takeReads(knowing: directory, at: now) {
      actions.append(.read(read.number, read.record))
    }
    guard watchedSince != nil else { return renew(at: now) }
    decideCluster(at: now)
    guard directory.shardCount != nil else { return }
    renew(at: now)
    directory.knowsAllLive = knowsAllLive(at: now)
    endSilentSessions(at: now)
    decideShards(at: now)
  }

  private mutating func decideCluster(at now: MonotonicTime) {
    guard directory.shardCount == nil else { return }
    write(.cluster(ClusterRecord(shards: options.shards)), at: now)
  }

  private mutating func renew(at now: MonotonicTime) {
    // Before the first look at the stream, it isn't known whether the name is in use.
    if session.session == nil, watchedSince == nil { return }
    let hasShards = leases.values.contains { $0.term != nil }
    guard let state = session.wantedState(directory.nodes[name], hasShards: hasShards, at: now) else {
      return
    }
    let record = NodeRecord(
      writer: writer, count: requests.nextNumber, session: session.session ?? 0, state: state,
      address: options.advertisedAddress, version: options.version)
    if let number = write(.node(name, record), at: now) { session.sending(number, at: now) }
  }

  /// Since when the engine has served this node without a gap; nil while it doesn't.
  private func servedSince(at now: MonotonicTime) -> MonotonicTime? {
    guard session.isValid(at: now), let validSince, let watchedSince else { return nil }
    return max(validSince, watchedSince)
  }

  /// Whether each node that lives must have been heard by now.
  private func knowsAllLive(at now: MonotonicTime) -> Bool {
    servedSince(at: now).map { $0 + times.lease <= now } ?? false
  }

  /// When this node, which the engine has served since `servedSince`, may call another one silent.
  private func silence(of entry: NodeEntry, _ node: String, _ servedSince: MonotonicTime) -> MonotonicTime {
    // The nodes take turns, so that one of many does it.
    max(entry.heard, servedSince) + times.lease + .milliseconds((ranks[node] ?? 0) * 20)
  }

  /// At each event, over all nodes: a closure here would copy all that this node knows.
  private mutating func endSilentSessions(at now: MonotonicTime) {
    guard let servedSince = servedSince(at: now) else { return }
    var silent: [(key: String, value: NodeEntry)] = []
    for (node, entry) in directory.nodes where entry.isLive && entry.heard + times.lease <= now {
      if node != name, silence(of: entry, node, servedSince) <= now { silent.append((node, entry)) }
    }
    for (node, entry) in silent.sorted(by: { $0.key < $1.key }) {
      var record = entry.record
      record.writer = writer
      record.count = requests.nextNumber
      record.session = directory.lastSession(of: node)
      record.state = .ended
      record.endedBy = name
      write(.node(node, record), at: now)
    }
  }

  /// The engine has removed what it knew of a shard's owner, which may be paused: from here on it refuses a renewal of that session, and the shard is free.
  private mutating func endForgottenSession(_ shard: Int, at now: MonotonicTime) {
    guard let owner = directory.forgottenOwner(of: shard), owner.owner != name else { return }
    var record = NodeRecord(
      writer: writer, count: requests.nextNumber, session: owner.session, state: .ended, address: "",
      version: "")
    record.endedBy = name
    write(.node(owner.owner, record), at: now)
  }

  private mutating func decideShards(at now: MonotonicTime) {
    guard let own = session.session, let count = directory.shardCount,
      session.isValid(at: now) || flaw == .noClock
    else { return }
    if let end = waitingUntil {
      if end <= now {
        waitingUntil = nil
      } else if directory.shards.isEmpty {
        // The nodes of a new cluster join one by one: where shards belong is found once for all of them.
        return
      }
    }
    let (placement, belonging) = place(count)
    guard areShardsDue else { return }
    // Again at each event until everything is where it belongs: when a shard becomes free depends on more than its own messages.
    areShardsDue = leases.count != belonging.count
    // Those whose first message is under way count, too.
    var moves = leases.count { shard, lease in
      guard lease.term != nil else { return false }
      return !lease.isHeld || !requests.areIdle && requests.isBusy(ControlRecord.shard(shard, nil).subject)
    }
    // The others have nothing to do with this node: the work of an event grows with the number of its own shards only.
    for shard in belonging.union(leases.keys).sorted() {
      let lease = leases[shard] ?? ShardLeaseState()
      if !lease.isHeld || !belonging.contains(shard) { areShardsDue = true }
      switch lease.phase {
      case .none:
        guard !session.isLeaving, belonging.contains(shard), refused[shard].map({ $0 <= now }) ?? true,
          waitingUntil == nil || directory.isWaiting(shard)
        else { continue }
        guard directory.owner(of: shard) == nil else {
          endForgottenSession(shard, at: now)
          continue
        }
        refused[shard] = nil
        write(.shard(shard, record(.held, own, term: 0)), at: now)
      case .held(let term):
        if belonging.contains(shard) { continue }
        let target = placement.target(of: shard)
        guard target != nil || session.isLeaving, moves < options.maximumMoves else { continue }
        var record = record(.moving, own, term: term)
        record.successor = target
        moves += 1
        write(.shard(shard, record), at: now)
      case .closing: break
      case .releasing(let term): write(.shard(shard, record(.free, own, term: term)), at: now)
      }
    }
  }

  /// Where shards belong, and those of this node.
  private mutating func place(_ count: Int) -> (current: Placement, own: Set<Int>) {
    if let placement { return placement }
    let current = Placement(directory)
    let own = Set((0..<count).lazy.filter { [name] in current.target(of: $0) == name })
    placement = (current, own)
    areShardsDue = true
    return (current, own)
  }

  private func record(_ state: ShardRecord.State, _ session: UInt64, term: UInt64) -> ShardRecord {
    ShardRecord(
      writer: writer, count: requests.nextNumber, state: state, owner: name, session: session, term: term)
  }

  /// - Returns: the request's number; nil when another request about the subject is under way or waits.
  @discardableResult
  private mutating func write(_ record: ControlRecord, at now: MonotonicTime) -> UInt64? {
    let expected = directory.sequence(of: record.subject)
    guard let write = requests.write(record, expecting: expected, at: now) else { return nil }
    actions.append(.write(write))
    return write.number
  }

  /// When something may be due without another event; nil for never.
  func deadline(at now: MonotonicTime) -> MonotonicTime? {
    var deadlines = requests.deadlines + refused.values
    if let waitingUntil { deadlines.append(waitingUntil) }
    deadlines += session.deadlines(directory.nodes[name])
    var first = deadlines.filter { $0 > now }.min()
    guard let servedSince = servedSince(at: now) else { return first }
    func take(_ time: MonotonicTime) {
      if time > now, first.map({ time < $0 }) ?? true { first = time }
    }
    take(servedSince + times.lease)
    for (node, entry) in directory.nodes where entry.isLive && node != name {
      // Before its turn is looked up: most of the nodes are far from silent.
      if let first, entry.heard + times.lease >= first { continue }
      take(silence(of: entry, node, servedSince))
    }
    return first
  }

  // MARK: Looking up

  /// Whether this node may act as the owner of a shard, by its own clock. For tests.
  func believes(in shard: Int, at now: MonotonicTime) -> UInt64? {
    guard session.isValid(at: now) || flaw == .noClock, leases[shard]?.isReleasing == false else {
      return nil
    }
    return leases[shard]?.term
  }

  func shard(of topic: String) -> Int? { directory.shardCount.map { ShardHash.shard(of: topic, of: $0) } }

  func route(of shard: Int) -> ClusterRoute {
    if let lease = leases[shard], let term = lease.term {
      return lease.isHeld && lease.isOpen ? .local(term: term) : .moving
    }
    guard let record = directory.owner(of: shard), record.state == .held, record.owner != name,
      let node = directory.nodes[record.owner]
    else { return .moving }
    return .remote(node: record.owner, address: node.record.address, term: record.term)
  }
}

/// A fault that tests plant, so that their oracle must notice it.
enum ClusterFlaw: Hashable, Sendable {
  case none
  /// The node believes in its lease without looking at its clock.
  case noClock
  /// Renewals expect nothing.
  case blindRenewal
  /// Shards and names are taken without an expectation.
  case blindTake
}
