import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire

/// The topics of a subscription to a pattern that other nodes serve. Belongs to the subscription's loop.
///
/// ```
///  client ── PatternStream ──┬── members: topics of this node
///                            └── RelayedPattern ──┬── PatternPart ── NodeLink ── node b: the same pattern, of its own topics
///                                                 └── PatternPart ── NodeLink ── node c
/// ```
///
/// It begins when each shard has an owner and each owner has announced its topics, all with the same assignment of shards. After that, a node that can't be
/// reached, or a topic that moves, delays only its own topics: the subscriber's position in each topic is stored here, and is sent when a stream is opened.
final class RelayedPattern: RemoteTopics {
  private let action: ServerAction
  private let frame: SubscribePattern
  let stream: UInt32
  unowned let streams: StreamMultiplexer
  unowned let relay: NodeRelay
  /// The subscription that owns this object.
  private(set) weak var pattern: PatternStream?
  let agreement: ShardAgreement
  /// The time at which the client gets an error and has to try again, unless the subscription has begun.
  private let deadline: MonotonicTime
  private(set) var parts: [PatternPart] = []
  private var lastIndex = 0
  private var lastSource: UInt64 = 0
  var topics = RelayedTopics()
  var loans = PatternLoans()
  var queue = PatternQueue()
  /// The bytes of the queue that are counted in the connection's buffer.
  private var counted = 0
  private var orphanTimer: TimerToken?
  private(set) var hasBegun = false
  private(set) var isOver = false
  /// Whether the whole subscription is about to start again.
  private var isBeginningAgain = false
  /// The number of topics that are counted in the connection's matches.
  private(set) var count = 0
  /// The client's positions that aren't in `topics` yet. Streams are opened only after that.
  private var unentered: ArraySlice<TopicPosition>
  /// The most topics to check in one turn.
  private static let lookedAtTogether = 4_096
  /// Parts that begin with the subscription's original start again, since the client's permissions have changed.
  private var repeatsStart: Set<Int> = []

  /// - Parameters:
  ///   - agreement: the owners of all shards.
  init(
    _ action: ServerAction, _ frame: SubscribePattern, stream: UInt32, by agreement: ShardAgreement,
    on streams: StreamMultiplexer, for relay: NodeRelay
  ) {
    self.action = action
    self.frame = frame
    self.stream = stream
    self.agreement = agreement
    self.streams = streams
    self.relay = relay
    deadline = relay.waitDeadline
    unentered = frame.positions[...]
    topics.reserve(unentered.count)
  }

  // MARK: The subscription

  var reserved: UInt64 { loans.reserved }
  var hasWaiting: Bool { !queue.isEmpty }
  var written: UInt64 { queue.taken }

  func begin(_ pattern: PatternStream, _ shards: ShardSet) {
    self.pattern = pattern
    relay.patterns.append(self)
    guard shards == agreement.own else { return beginAgain() }
    for node in agreement.others.keys.sorted(by: { $0.name < $1.name }) { addPart(node) }
    enter()
  }

  /// Enters the client's positions in topics of other nodes, a part in each of the connection's turns, and then opens the streams.
  private func enter() {
    guard !isOver, !isBeginningAgain else { return }
    let part = unentered.prefix(streams.client.workBudget.left(.positions))
    for position in part where !relay.isOwn(position.topic) { topics.add(position, number: 0) }
    streams.client.workBudget.spend(part.count, of: .positions)
    unentered = unentered.dropFirst(part.count)
    guard unentered.isEmpty else { return streams.goOnLater { [weak self] in self?.enter() } }
    unentered = []
    tryAgain()
    haveBegun()
  }

  private func addPart(_ node: RemoteNode) {
    lastIndex += 1
    let part = PatternPart(of: self, at: node, index: lastIndex, on: relay.loop)
    parts.append(part)
    if hasBegun {
      (part.wasAnnounced, part.wasLive) = (true, true)
    } else {
      pattern?.awaitNode()
    }
  }

  func demandChanged() { settle() }

  func turnEnded(isUsed: Bool, waits: Bool) {
    loans.ownTurnEnded(isUsed: isUsed, waits: waits)
    settle()
  }

  func left(_ position: TopicPosition, number: UInt32) throws(WireError) {
    topics.add(position, number: number)
    lookForOrphans()
    try countTopics()
  }

  /// Checks after a delay for nodes that serve topics which their streams don't read, without the subscriber's position, and opens these streams again.
  func lookForOrphans() {
    guard hasBegun, orphanTimer == nil else { return }
    look(after: .milliseconds(100), RelayedTopics.Walk(), RelayedTopics.Neglect())
  }

  /// Checks the next topics after a delay.
  private func look(
    after delay: Duration, _ walk: RelayedTopics.Walk, _ neglect: RelayedTopics.Neglect
  ) {
    orphanTimer = relay.loop.schedule(after: delay) { [weak self] in
      guard let self else { return }
      orphanTimer = nil
      var (walk, neglect) = (walk, neglect)
      var sources: [RemoteNode: UInt64] = [:]
      for part in parts where part.isComplete && part.hasStream { sources[part.node] = part.source }
      topics.look(&walk, atMost: Self.lookedAtTogether, for: &neglect) { name in
        if case .remote(let node) = relay.route(of: name) { sources[node] } else { nil }
      }
      guard topics.isDone(walk) else { return look(after: .milliseconds(1), walk, neglect) }
      if neglect.looksAgain { lookForOrphans() }
      for part in parts where neglect.reopened.contains(part.source) { reopen(part) }
    }
  }

  /// Counts the topics in the connection's matches.
  ///
  /// - Throws: ``ErrorCode/limitReached``.
  func countTopics() throws(WireError) {
    guard count != topics.count else { return }
    while count < topics.count {
      try streams.counts.addMatch(by: streams.client)
      count += 1
    }
    streams.counts.removeMatches(count - topics.count)
    count = topics.count
  }

  func take(_ name: String) -> (position: TopicPosition, after: UInt64)? {
    guard let position = topics.take(name) else { return nil }
    streams.counts.removeMatches(1)
    count -= 1
    queue.closeBlock()
    return (position, queue.added)
  }

  func reconsider() {
    for part in parts {
      repeatsStart.insert(part.index)
      closeStream(of: part)
    }
    tryAgain()
  }

  func release() {
    isOver = true
    relay.loop.cancel(&orphanTimer)
    relay.forget(self)
    for part in parts { part.release() }
    parts = []
    queue = PatternQueue()
    countWaiting()
  }

  private func countWaiting() {
    streams.relayed(queue.bytes - counted)
    counted = queue.bytes
  }

  func write(into writes: WriteBatch, _ frames: inout PatternFrames) -> RemoteFrames {
    guard let entry = queue.popFirst() else { return .none }
    countWaiting()
    switch entry.content {
    case .mark(.announced): frames.nodeAnnounced()
    case .mark(.live): frames.nodeSettled()
    case .mark(.end(let fault)):
      writes.append(fault, stream: stream)
      return .end
    case .frames(let number, let bytes): frames.pass(bytes, about: number, writes)
    }
    if entry.records > 0 {
      loans.written(entry.records, from: entry.part)
      parts.first { $0.index == entry.part }?.unwrittenBytes -= entry.bytes
    }
    return .written(records: entry.records)
  }

  func settle() {
    guard hasBegun, !isOver, let pattern else { return }
    for action in loans.settle(pattern.credit) {
      parts.first { $0.index == action.part }?.send(action.frame)
    }
  }

  // MARK: Nodes

  /// Called when routes or nodes have changed.
  func routesChanged() {
    if isOver { return }
    guard hasBegun else { return relay.agreement == agreement ? () : beginAgain() }
    let nodes = relay.owners
    // An open stream continues: the node may be alive even if this node has lost the engine and gets no news of it.
    for part in parts where !nodes.contains(part.node) && !part.hasStream { remove(part) }
    for node in nodes where !parts.contains(where: { $0.node == node }) { addPart(node) }
    tryAgain()
    lookForOrphans()
  }

  /// Opens missing streams if links are available.
  func tryAgain() {
    guard !isOver, unentered.isEmpty else { return }
    for part in parts where !part.hasStream && !part.isWaiting { open(part) }
  }

  private func open(_ part: PatternPart) {
    guard let link = relay.link(to: part.node, for: streams) else { return }
    lastSource += 1
    guard part.open(over: link, as: lastSource) else { return part.waitToTryAgain() }
    topics.begin(lastSource)
    let start = hasBegun && repeatsStart.remove(part.index) == nil ? .offset(0) : frame.start
    var opening = SubscribePattern(
      pattern: frame.pattern, start: start, lag: frame.lag, grantedThrough: 0, filter: frame.filter)
    var walk = RelayedTopics.Walk()
    var batches = nextPositions(of: part, &walk)
    opening.positions = batches.isEmpty ? [] : batches.removeFirst()
    opening.more = !batches.isEmpty || !topics.isDone(walk)
    part.send(streams.origin)
    part.send(opening)
    send(batches, of: part, walk)
  }

  /// Returns the next positions with which a part's stream is opened, in batches that fit the node's frames.
  private func nextPositions(of part: PatternPart, _ walk: inout RelayedTopics.Walk) -> [[TopicPosition]] {
    topics.positions(&walk, atMost: Self.lookedAtTogether, of: part.source) {
      relay.isServed($0, by: part.node)
    }.batches(ofBytes: max(part.longestFrame / 2, Limits.smallestFrame / 2))
  }

  /// Sends positions, and the rest of them in later turns.
  private func send(_ batches: [[TopicPosition]], of part: PatternPart, _ walk: RelayedTopics.Walk) {
    let isDone = topics.isDone(walk)
    for (index, batch) in batches.enumerated() {
      part.send(Positions(batch, more: !isDone || index < batches.count - 1))
    }
    if isDone { return }
    streams.goOnLater { [weak self, weak part, source = part.source] in
      guard let self, let part, part.hasStream, part.source == source, !isOver else { return }
      var walk = walk
      let batches = nextPositions(of: part, &walk)
      send(batches.isEmpty ? [[]] : batches, of: part, walk)
    }
  }

  /// Removes a node that has left the cluster. Other nodes take over its topics.
  func remove(_ part: PatternPart) {
    closeStream(of: part)
    part.release()
    parts.removeAll { $0 === part }
    if !part.wasAnnounced { queue.append(.announced, part: part.index) }
    if !part.wasLive { queue.append(.live, part: part.index) }
    wake()
  }

  func closeStream(of part: PatternPart) {
    part.leaveOwner()
    topics.end(part.source)
    loans.end(part.index)
  }

  /// Starts the whole subscription again, because something has changed before all nodes have announced their topics.
  func beginAgain() {
    guard !isOver, !hasBegun, !isBeginningAgain, let pattern else { return }
    isBeginningAgain = true
    relay.beginAgain(action, of: pattern, on: streams, until: deadline)
  }

  func haveBegun() {
    guard !hasBegun, !isOver, !isBeginningAgain, unentered.isEmpty, parts.allSatisfy(\.isComplete) else {
      return
    }
    guard relay.agreement == agreement else { return beginAgain() }
    hasBegun = true
    topics.dropUnknown()
    settle()
    pattern?.begin()
    // Shards may have moved meanwhile.
    routesChanged()
  }

  func wake() {
    countWaiting()
    if hasBegun, let pattern { streams.makeReady(pattern) }
  }
}
