import SluiceIO
import SluiceStore

/// The decisions of a node of a cluster, as a value: its input is messages, results and times, its output requests and events.
///
/// It connects leases, the directory and placement: after each event, it derives from the directory which messages are due.
///
/// ```
///   messages ──► Directory ──┬──► NodeSession, SilenceWatch ──► messages of nodes
///                            └──► ShardLeaseState, ShardAllotment ──► messages of shards, events
/// ```
struct ClusterControl {
  enum Action {
    case write(ControlWrite)
    /// Read the last message of the record's subject from the stream's leader.
    case read(UInt64, ControlRecord)
    /// Check whether the broker can be reached, and report the result with ``checked(_:_:at:)``.
    case check(PeerCheck)
    case event(ClusterEvent)
  }

  let name: String
  private let options: ClusterOptions
  private let times: LeaseTimes
  private let writer: UInt64
  private(set) var directory = Directory()
  private(set) var session: NodeSession
  /// The leases of the shards that the node holds, takes or hands over.
  private(set) var leases: [Int: ShardLeaseState] = [:]
  private var allotment: ShardAllotment
  private var silence: SilenceWatch
  private(set) var peers: PeerChecks
  /// The identity of this node's broker; 0 for a node whose peers aren't checked.
  var broker: UInt64 = 0
  /// Why other live nodes haven't been reached for longer than a dead node could be silent.
  private(set) var peerProblems: [String: String] = [:]
  private var takeOvers = TakeOverLog()
  private(set) var commitLatency: Duration?
  /// When the engine last answered a write or a read; nil before the first answer.
  private(set) var lastAnswer: MonotonicTime?
  private var requests: ControlRequests
  private var actions: [Action] = []
  private var changed: Set<Int> = []
  /// Whether another node has joined, left or changed its address since the last event.
  private var haveNodesChanged = false
  /// A fault planted by a test, which its oracle must detect.
  var flaw = ClusterFlaw.none

  init(_ options: ClusterOptions, writer: UInt64) {
    self.options = options
    name = options.name
    times = options.times
    self.writer = writer
    session = NodeSession(writer: writer, times: options.times)
    requests = ControlRequests(retry: options.times.retry)
    allotment = ShardAllotment(for: options.name, maximumMoves: options.maximumMoves)
    silence = SilenceWatch(of: options.name, lease: options.times.lease)
    peers = PeerChecks(of: options.name)
  }

  /// The actions decided since the last call.
  mutating func takeActions(at now: MonotonicTime) -> [Action] {
    decide(at: now)
    if !changed.isEmpty || haveNodesChanged {
      actions.append(.event(.directoryChanged(shards: changed.sorted())))
      (changed, haveNodesChanged) = ([], false)
    }
    defer { actions = [] }
    return actions
  }

  // MARK: Events

  /// Begins a watch: the last message of each subject follows. Until all have arrived, the known states of different subjects are of different times.
  mutating func watchBegan() {
    silence.watched(since: nil)
  }

  /// Whether the directory is current.
  var isWatching: Bool { silence.watchedSince != nil }

  /// The time without a message of another node after which its session should have ended: a lease, and the time that the engine may take to store the end.
  var silenceLimit: Duration { times.lease + times.answer }

  /// Whether a write or a read is pending or waits to be retried.
  var isAsking: Bool { !requests.areIdle }

  mutating func watchCurrent(at now: MonotonicTime) {
    silence.watched(since: now)
  }

  /// Handles a stored message: from the watch, from a write whose result has arrived, or from a read.
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
    // The record as it is read back: a session or term of 0 is its own sequence.
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

  /// Notes that the broker has opened a shard.
  mutating func opened(_ shard: Int, term: UInt64, at now: MonotonicTime) {
    guard leases[shard]?.opened(term) == true else { return }
    changed.insert(shard)
    if let takeOver = takeOvers.opened(shard, term: term, at: now) { tell(.takenOver(takeOver)) }
  }

  /// Notes that the broker has closed a shard, or couldn't open it.
  mutating func closed(_ shard: Int, term: UInt64, at now: MonotonicTime) {
    guard leases[shard]?.term == term else { return }
    allotment.leasesChanged()
    if leases[shard]?.isHeld == true { allotment.refused(shard, until: now + .seconds(1)) }
    leases[shard]?.closed(term)
  }

  /// Handles the result of a check.
  ///
  /// - Parameter problem: why the broker can't be reached; nil if it was reached.
  mutating func checked(_ peer: PeerCheck, _ problem: String?, at now: MonotonicTime) {
    peers.finished(peer, problem, at: now)
  }

  /// Checks a node again, because a link to it has failed.
  mutating func doubt(_ node: String, at now: MonotonicTime) { peers.doubt(node, at: now) }

  mutating func leave() { session.isLeaving = true }

  private mutating func tell(_ event: ClusterEvent) { actions.append(.event(event)) }

  // MARK: Effects of a message

  /// The directory's former state of a message's subject.
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
      if !changes.isEmpty { allotment.leasesChanged() }
      apply(changes, to: shard, former, at: now)
    default: break
    }
    noteChanges(record, former, at: now)
  }

  private mutating func noteChanges(_ record: ControlRecord, _ former: Former, at now: MonotonicTime) {
    switch record {
    case .shard(let shard, _): changed.insert(shard)
    case .drain, .pin, .cluster: allotment.nodesChanged()
    case .reach(let node, _):
      allotment.nodesChanged()
      peers.stated(about: node)
    case .node(let node, _):
      let entry = directory.nodes[node]
      if former.node?.record.state != entry?.record.state
        || former.node?.record.broker != entry?.record.broker
      {
        allotment.nodesChanged()
      }
      silence.met(node)
      peers.observed(entry, of: node, at: now)
      if node != name, former.node?.liveAddress != entry?.liveAddress { haveNodesChanged = true }
      guard
        former.node?.record.session != entry?.record.session || former.node?.isLive != entry?.isLive
      else { return }
      for (shard, entry) in directory.shards where entry.record?.owner == node { changed.insert(shard) }
    }
  }

  private mutating func apply(_ changes: [NodeSession.Change], at now: MonotonicTime) {
    if !changes.isEmpty { allotment.leasesChanged() }
    for change in changes {
      switch change {
      case .joined(let session):
        silence.valid(since: now)
        if let count = directory.shardCount, count != options.shards,
          options.shards != ClusterOptions.standardShards
        {
          tell(.shardsKept(count, wanted: options.shards))
        }
        allotment.wait(until: now + times.initialDelay)
        tell(.joined(session: session))
      case .suspended:
        silence.valid(since: nil)
        tell(.suspended)
      case .resumed:
        silence.valid(since: now)
        tell(.resumed)
      case .lost(let node):
        silence.valid(since: nil)
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
        takeOvers.gained(
          shard, former.shard, givenBy: directory.shards[shard]?.record?.giver, directory, at: now)
        tell(.gained(shard: shard, term: term))
      case .closing(let term, let successor): tell(.closing(shard: shard, term: term, successor: successor))
      case .lost(let term):
        takeOvers.lost(shard)
        tell(.lost(shard: shard, term: term))
      case .released: takeOvers.lost(shard)
      }
    }
  }

  // MARK: Decisions

  private mutating func decide(at now: MonotonicTime) {
    if flaw != .noClock { apply(session.expire(at: now), at: now) }
    for read in requests.takeReads(knowing: directory, at: now) {
      actions.append(.read(read.number, read.record))
    }
    guard isWatching else { return renew(at: now) }
    decideCluster(at: now)
    guard directory.shardCount != nil else { return }
    renew(at: now)
    directory.knowsAllLive = silence.knowsAllLive(isValid: session.isValid(at: now), at: now)
    endSilentSessions(at: now)
    decidePeers(at: now)
    decideShards(at: now)
  }

  /// Checks which other nodes can be reached, and states the results that aren't stated yet.
  private mutating func decidePeers(at now: MonotonicTime) {
    guard broker != 0 else { return }
    for peer in peers.takeDue(at: now) { actions.append(.check(peer)) }
    let problems = peers.problems(lasting: silenceLimit, at: now)
    if problems != peerProblems { (peerProblems, haveNodesChanged) = (problems, true) }
    guard !peers.unstated.isEmpty, session.isValid(at: now) else { return }
    for node in peers.unstated.sorted() {
      guard let entry = directory.nodes[node], !directory.isReached(node) else {
        peers.isStated(node)
        continue
      }
      write(.reach(node, ReachRecord(broker: entry.record.broker, by: name)), at: now)
    }
  }

  private mutating func decideCluster(at now: MonotonicTime) {
    guard directory.shardCount == nil else { return }
    write(.cluster(ClusterRecord(shards: options.shards)), at: now)
  }

  private mutating func renew(at now: MonotonicTime) {
    // Before the stream has been read, it isn't known whether the name is in use.
    if session.session == nil, !isWatching { return }
    let hasShards = leases.values.contains { $0.term != nil }
    guard let state = session.wantedState(directory.nodes[name], hasShards: hasShards, at: now) else {
      return
    }
    let record = NodeRecord(
      writer: writer, count: requests.nextNumber, session: session.session ?? 0, state: state,
      address: options.advertisedAddress, version: options.version, broker: broker)
    if let number = write(.node(name, record), at: now) { session.sending(number, at: now) }
  }

  private mutating func endSilentSessions(at now: MonotonicTime) {
    for node in silence.silent(among: directory.nodes, isValid: session.isValid(at: now), at: now) {
      guard let entry = directory.nodes[node] else { continue }
      var record = entry.record
      record.writer = writer
      record.count = requests.nextNumber
      record.session = directory.lastSession(of: node)
      record.state = .ended
      record.endedBy = name
      write(.node(node, record), at: now)
    }
  }

  private mutating func decideShards(at now: MonotonicTime) {
    guard let own = session.session, session.isValid(at: now) || flaw == .noClock else { return }
    for step in allotment.steps(directory, leases, requests, isLeaving: session.isLeaving, at: now) {
      switch step {
      case .take(let shard): write(.shard(shard, record(.held, own, term: 0)), at: now)
      case .endSession(let owner): end(owner.session, of: owner.owner, at: now)
      case .move(let shard, let term, let target):
        var record = record(.moving, own, term: term)
        record.successor = target
        write(.shard(shard, record), at: now)
      case .give(let shard, let term, let target): give(shard, own, term: term, to: target, at: now)
      case .free(let shard, let term): write(.shard(shard, record(.free, own, term: term)), at: now)
      }
    }
  }

  private mutating func end(_ session: UInt64, of node: String, at now: MonotonicTime) {
    var record = NodeRecord(
      writer: writer, count: requests.nextNumber, session: session, state: .ended, address: "", version: "")
    record.endedBy = name
    write(.node(node, record), at: now)
  }

  /// Makes another node the owner of a closed shard, as if it had taken it: one message instead of two, and the other node needn't wait for the first.
  private mutating func give(
    _ shard: Int, _ own: UInt64, term: UInt64, to target: String, at now: MonotonicTime
  ) {
    guard let node = directory.nodes[target]?.record else {
      write(.shard(shard, record(.free, own, term: term)), at: now)
      return
    }
    let record = ShardRecord(
      writer: node.writer, count: requests.nextNumber, state: .held, owner: target, session: node.session,
      term: 0, giver: name)
    write(.shard(shard, record), at: now)
  }

  private func record(_ state: ShardRecord.State, _ session: UInt64, term: UInt64) -> ShardRecord {
    ShardRecord(
      writer: writer, count: requests.nextNumber, state: state, owner: name, session: session, term: term)
  }

  /// - Returns: the request's number; nil if another request for the subject is pending or waits.
  @discardableResult
  private mutating func write(_ record: ControlRecord, at now: MonotonicTime) -> UInt64? {
    let expected = directory.sequence(of: record.subject)
    guard let write = requests.write(record, expecting: expected, at: now) else { return nil }
    actions.append(.write(write))
    return write.number
  }

  /// The time at which an action may be due without another event; nil for never.
  func deadline(at now: MonotonicTime) -> MonotonicTime? {
    let deadlines =
      requests.deadlines + allotment.deadlines + peers.deadlines(lasting: silenceLimit)
      + session.deadlines(directory.nodes[name])
    return silence.deadline(
      deadlines.filter { $0 > now }.min(), among: directory.nodes, isValid: session.isValid(at: now), at: now)
  }

  // MARK: Looking up

  /// The address of another live process with this node's name, which keeps this one from joining; nil for none.
  var nameHolder: String? {
    guard session.session == nil, let entry = directory.nodes[name], entry.isLive,
      entry.record.writer != writer
    else { return nil }
    return entry.record.address
  }

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

/// A fault that tests plant and their oracle must detect.
enum ClusterFlaw: Hashable, Sendable {
  case none
  /// The node relies on its lease without checking the time.
  case noClock
  /// Renewals are sent without an expectation.
  case blindRenewal
  /// Shards and names are taken without an expectation.
  case blindTake
}
