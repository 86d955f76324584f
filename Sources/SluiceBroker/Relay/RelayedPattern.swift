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
/// It begins when each shard has an owner and each owner has told its topics, all for the same division of shards. From then on a node that can't be reached, or
/// a topic that moves, holds up only its own topics: where the subscriber is in each is known here, and goes with the next stream.
final class RelayedPattern: RemoteTopics {
  private let action: ServerAction
  private let frame: SubscribePattern
  private let stream: UInt32
  private unowned let streams: StreamMultiplexer
  private unowned let relay: NodeRelay
  /// The subscription that has it.
  private weak var pattern: PatternStream?
  private let agreement: ShardAgreement
  /// When the client is told to try again, unless the subscription has begun.
  private let deadline: MonotonicTime
  private var parts: [PatternPart] = []
  private var lastIndex = 0
  private var lastSource: UInt64 = 0
  private var topics = RelayedTopics()
  private var loans = PatternLoans()
  private var queue = PatternQueue()
  /// The part of its bytes that is counted as the connection's.
  private var counted = 0
  private var orphanTimer: TimerToken?
  private(set) var hasBegun = false
  private var isOver = false
  /// It is about to be asked for again from the beginning.
  private var isBeginningAgain = false
  /// The topics that are counted as the connection's.
  private(set) var count = 0
  /// The client's permissions have changed, and the parts begin as at first.
  private var repeatsStart: Set<Int> = []

  /// - Parameters:
  ///   - agreement: which node serves which shards.
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
    for position in frame.positions where !relay.isOwn(position.topic) { topics.add(position, number: 0) }
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
    for part in parts where !part.hasStream { open(part) }
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

  /// After a while opens the streams again of nodes that serve topics with which none goes on, and don't know where the subscriber is.
  private func lookForOrphans() {
    guard hasBegun, orphanTimer == nil else { return }
    orphanTimer = relay.loop.schedule(after: .milliseconds(100)) { [weak self] in
      guard let self else { return }
      orphanTimer = nil
      for part in parts where part.isComplete && part.hasStream {
        if topics.waits(for: part.source, where: { relay.isServed($0, by: part.node) }) { reopen(part) }
      }
    }
  }

  /// Counts the topics as the connection's.
  ///
  /// - Throws: ``ErrorCode/limitReached``.
  private func countTopics() throws(WireError) {
    guard count != topics.count else { return }
    while count < topics.count {
      try streams.counts.addMatch(streams.core)
      count += 1
    }
    streams.counts.removeMatches(count - topics.count, streams.core)
    count = topics.count
  }

  func take(_ name: String) -> (position: TopicPosition, after: UInt64)? {
    guard let position = topics.take(name) else { return nil }
    streams.counts.removeMatches(1, streams.core)
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

  private func settle() {
    guard hasBegun, !isOver, let pattern else { return }
    for action in loans.settle(pattern.credit) {
      parts.first { $0.index == action.part }?.send(action.frame)
    }
  }

  // MARK: Nodes

  /// Routes or nodes have changed.
  func routesChanged() {
    if isOver { return }
    guard hasBegun else { return relay.agreement == agreement ? () : beginAgain() }
    let nodes = relay.owners
    // A stream that is open goes on: the node may live, although this one has lost the engine and doesn't hear of it.
    for part in parts where !nodes.contains(part.node) && !part.hasStream { remove(part) }
    for node in nodes where !parts.contains(where: { $0.node == node }) { addPart(node) }
    tryAgain()
    lookForOrphans()
  }

  /// Opens the streams that are missing, as far as links are there.
  func tryAgain() {
    if isOver { return }
    for part in parts where !part.hasStream && !part.isWaiting { open(part) }
  }

  private func open(_ part: PatternPart) {
    guard let link = relay.link(to: part.node, for: streams) else { return }
    lastSource += 1
    guard part.open(over: link, as: lastSource) else { return part.waitToTryAgain() }
    let positions = topics.begin(lastSource) { relay.isServed($0, by: part.node) }
    let start = hasBegun && repeatsStart.remove(part.index) == nil ? .offset(0) : frame.start
    var batches = positions.batches(ofBytes: max(part.longestFrame / 2, Limits.smallestFrame / 2))
    var first = SubscribePattern(
      pattern: frame.pattern, start: start, lag: frame.lag, grantedThrough: 0, filter: frame.filter)
    first.positions = batches.isEmpty ? [] : batches.removeFirst()
    first.more = !batches.isEmpty
    part.send(first)
    for (index, batch) in batches.enumerated() {
      part.send(Positions(batch, more: index < batches.count - 1))
    }
  }

  /// A node leaves the cluster: its topics will be another node's.
  private func remove(_ part: PatternPart) {
    closeStream(of: part)
    part.release()
    parts.removeAll { $0 === part }
    if !part.wasAnnounced { queue.append(.announced, part: part.index) }
    if !part.wasLive { queue.append(.live, part: part.index) }
    wake()
  }

  private func closeStream(of part: PatternPart) {
    part.leaveOwner()
    topics.end(part.source)
    loans.end(part.index)
  }

  /// Something has changed before all nodes have told their topics: asks all of them again.
  private func beginAgain() {
    guard !isOver, !hasBegun, !isBeginningAgain, let pattern else { return }
    isBeginningAgain = true
    relay.beginAgain(action, of: pattern, on: streams, until: deadline)
  }

  private func haveBegun() {
    guard !hasBegun, !isOver, !isBeginningAgain, parts.allSatisfy(\.isComplete) else { return }
    guard relay.agreement == agreement else { return beginAgain() }
    hasBegun = true
    topics.dropUnknown()
    settle()
    pattern?.begin()
    // Shards may have moved since.
    routesChanged()
  }

  // MARK: Frames

  func opened(_ part: PatternPart, _ frame: Subscribed) {
    loans.begin(part.index)
    let shards = ShardSet(count: frame.nextOffset, hash: frame.liveOffset)
    if !hasBegun, shards != agreement.others[part.node] ?? ShardSet() { return beginAgain() }
    settle()
  }

  /// A stream has ended.
  func ended(_ part: PatternPart, _ fault: Fault) {
    topics.end(part.source)
    loans.end(part.index)
    if isOver { return }
    guard fault.code == .topicMoved else {
      if !hasBegun { return streams.refuse(stream, fault) }
      queue.append(.end(fault), part: part.index)
      return wake()
    }
    guard hasBegun else { return beginAgain() }
    if relay.owners.contains(part.node) { part.waitToTryAgain() } else { remove(part) }
    settle()
  }

  /// The stream is opened again where the subscriber is.
  private func reopen(_ part: PatternPart) {
    closeStream(of: part)
    guard hasBegun else { return beginAgain() }
    part.waitToTryAgain()
  }

  /// - Returns: false for a frame that doesn't belong there.
  func receive(
    _ type: FrameType, _ body: UnsafeRawBufferPointer, from part: PatternPart
  ) throws(WireError) -> Bool {
    if isOver { return true }
    let source = part.source
    var about: UInt32?
    var records: UInt64 = 0
    switch type {
    case .deliver:
      let (header, batch) = unsafe try DeliverHeader.decode(body)
      about = try topics.deliver(header, from: source)
      records = UInt64(header.count)
      try loans.received(records, bytes: batch.count, from: part.index, isWanted: about != nil)
    case .matched: try unsafe matched(Matched(body: body), part)
    case .unmatched:
      if let number = topics.unmatched(unsafe try Unmatched(body: body).number, from: source) {
        queue.append(Unmatched(number: number), part: part.index, stream: stream)
      }
    case .selectTopic: select(unsafe try SelectTopic(body: body).number, part)
    case .live:
      let live = try unsafe Live(body: body)
      about = topics.live(live, from: source)
      if about == nil, !topics.isSelected(source) { becameLive(part) }
    case .lag: about = try topics.lagged(unsafe Lag(body: body), from: source)
    case .complete:
      _ = try unsafe Complete(body: body)
      about = topics.completed(from: source)
    case .offer:
      try loans.offered(unsafe Offer(body: body), by: part.index)
      settle()
    default: return false
    }
    if let about {
      unsafe queue.append(type, body, about: about, records: records, part: part.index, stream: stream)
      if records > 0 { track(body.count, of: part) }
    }
    streams.attempt(stream) { () throws(WireError) in try countTopics() }
    wake()
    return true
  }

  private func matched(_ frame: Matched, _ part: PatternPart) throws(WireError) {
    if frame.place.epoch != 0, hasBegun {
      if relay.isOwn(frame.topic) { return }
      try pattern?.giveUp(frame.topic)
    }
    let match = try topics.matched(frame, from: part.source) { pattern?.newNumber() ?? 0 }
    switch match {
    case .announce(let frame):
      queue.append(frame, part: part.index, stream: stream)
    case .gone(let number):
      if let number { queue.append(Unmatched(number: number), part: part.index, stream: stream) }
    case .ignore: break
    case .reopen: reopen(part)
    }
  }

  private func select(_ number: UInt32, _ part: PatternPart) {
    topics.select(number, from: part.source)
    guard number == 0, !part.isComplete else { return }
    part.completed()
    if !part.wasAnnounced {
      part.wasAnnounced = true
      queue.append(.announced, part: part.index)
    }
    haveBegun()
  }

  private func becameLive(_ part: PatternPart) {
    guard !part.wasLive else { return }
    part.wasLive = true
    queue.append(.live, part: part.index)
  }

  /// Records have come. When they became so much longer that the loan is too large for them, the stream is opened again, with a small one.
  private func track(_ bytes: Int, of part: PatternPart) {
    part.unwrittenBytes += bytes + FrameHeader.size
    if part.unwrittenBytes > DemandWindow.bound(record: part.longestRecord) { reopen(part) }
  }

  private func wake() {
    countWaiting()
    if hasBegun, let pattern { streams.makeReady(pattern) }
  }
}

extension [TopicPosition] {
  /// Groups of about so many bytes when they are encoded, at least one position in each.
  func batches(ofBytes most: Int) -> [[TopicPosition]] {
    var batches: [[TopicPosition]] = []
    var bytes = Int.max
    for position in self {
      let length = position.topic.utf8.count + 24
      if bytes > most - Swift.min(length, most) {
        batches.append([])
        bytes = 0
      }
      bytes += length
      batches[batches.count - 1].append(position)
    }
    return batches
  }
}
