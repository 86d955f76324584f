import SluiceIO
import SluiceLog
import SluiceTopics
import SluiceWire

/// The topics that a subscription to a pattern reads: finds and joins them, moves them to other nodes, and leaves them.
extension PatternStream {
  /// Whether all topics that existed at the start of the subscription were joined.
  var hasBegun: Bool { topics.hasBegun }

  /// Finds topics to be joined next, until there are `count`, or the turn's work budget is exhausted.
  func findTopics(atMost count: Int) {
    while topics.needsMore(than: count), !streams.client.workBudget.isExhausted {
      let most = streams.client.workBudget.left(.names)
      var looks = most
      topics.find(looks: &looks) { topic in
        streams.client.matchesTopics(named: topic.name) && members?[topic.name]?.topic !== topic
      }
      streams.client.workBudget.spend(most - looks, of: .names)
    }
  }

  /// Sends SUBSCRIBED, once the topics of all nodes are known.
  func begin() {
    guard hasBegun, remote?.hasBegun ?? true else { return }
    if !isOpened {
      isOpened = true
      let shards = loan?.shards.set ?? ShardSet()
      streams.send(
        Subscribed(epoch: 0, nextOffset: shards.count, liveOffset: shards.hash), stream: stream)
      if let loan, loan.isPaced { streams.send(loan.offer(waits: false), stream: stream) }
    }
    streams.makeReady(self)
  }

  /// Joins topics that were found, within the turn's work budget. Returns whether all of them were joined.
  func join() throws(WireError) -> Bool {
    while !streams.client.workBudget.isExhausted, let (topic, position) = topics.next() {
      streams.client.workBudget.spend(1, of: .joins)
      try join(topic, startingAt: position, wasThere: true)
    }
    guard topics.isExhausted else { return false }
    let positions = topics.positionBytes
    let made = topics.begin(where: loan == nil ? nil : isAbsent)
    // A subscription with topics of other nodes keeps the frame.
    if remote == nil { streams.charge(of: stream)?.add(topics.positionBytes - positions) }
    for (topic, epoch) in made {
      try joinFromStart(topic, epoch)
    }
    return true
  }

  /// Returns whether a topic no longer exists for which another node has sent a position, and notes that for the node. Positions in topics that this node
  /// doesn't serve are kept for the case that it serves them later.
  private func isAbsent(_ name: String) -> Bool {
    guard let loan else { return false }
    let registry = streams.core.registry
    guard let shard = registry.routes?.shard(of: name),
      registry.servedShards.hasKept(shard, since: loan.shards)
    else { return false }
    if members?[name] == nil { loan.isAbsent(name, as: newNumber()) }
    return true
  }

  /// Returns the next unused number for a topic.
  func newNumber() -> UInt32 {
    lastNumber += 1
    return lastNumber
  }

  /// Returns the topics to be joined next whose starts only the store can find.
  func unknownStarts() -> [(topic: Topic, time: Int64)] { topics.unknownStarts() }

  /// Sets the start in a topic that the store has found.
  func begin(_ topic: Topic, at offset: UInt64) {
    topics.begin(topic, at: offset)
  }

  /// Whether there are more topics to join.
  var isJoining: Bool { !hasBegun || !topics.isExhausted }

  /// Leaves topics to which the client may no longer subscribe.
  func lose(where isLost: (String) -> Bool) {
    topics.remove(where: isLost)
    for member in members?.sorted ?? [] where isLost(member.topic.name) { lose(member) }
  }

  /// Joins topics to which the client may subscribe now, as if they had existed at the start.
  ///
  /// - Parameter topics: all topics that the pattern selects.
  func gain(_ topics: PatternWalk<Topic>) {
    self.topics.search(topics)
  }

  /// Called when a topic was created that the pattern selects.
  func topicMade(_ topic: Topic, _ epoch: TopicEpoch) throws(WireError) {
    guard hasBegun else { return topics.add(topic, epoch) }
    // It may have been joined before, after a change of permissions.
    if members?[topic.name]?.topic === topic { return }
    try joinFromStart(topic, epoch)
  }

  /// Joins a topic from its first record on, even if that epoch has ended and another one has begun meanwhile.
  private func joinFromStart(_ topic: Topic, _ epoch: TopicEpoch) throws(WireError) {
    guard streams.core.registry.find(topic.name) === topic else { return }
    // The topic has moved away and returned, before the former member was notified of the move.
    if remote != nil || loan != nil, let former = members?[topic.name], former.topic !== topic {
      return try join(topic, startingAt: position(of: former), wasThere: false, after: former.begins)
    }
    if let (position, after) = remote?.take(topic.name) {
      return try join(topic, startingAt: position, wasThere: false, after: after)
    }
    if let position = topics.takeKept(topic.name) {
      return try join(topic, startingAt: position, wasThere: false)
    }
    try join(topic, startingAt: nil, wasThere: false, endedEpoch: epoch.condition == .ended ? epoch : nil)
  }

  func join(
    _ topic: Topic, startingAt position: TopicPosition?, wasThere: Bool, endedEpoch: TopicEpoch? = nil,
    after frame: UInt64 = 0
  ) throws(WireError) {
    // The topic may have been deleted and recreated.
    guard streams.core.registry.find(topic.name) === topic else { return }
    if let position { topic.compare(KnownHistory(position), on: streams.topics) }
    let former = members?[topic.name]
    if former == nil { try streams.counts.addMatch(by: streams.client, isLimited: loan == nil) }
    let loopState = topic.loopState(on: streams.topics)
    if topic.isPaced { loopState.protectEverything() }
    let (present, buffered) = topic.attachSubscription(now: streams.loop.now)
    let epoch = endedEpoch ?? present
    do {
      let (cursor, missed) = try epoch.start(
        topics.frame(toSubscribeTo: topic, epoch, position, wasThere: wasThere), lag: topic.settings.lag,
        buffered: buffered,
        wallClock: streams.loop.wallClock)
      let member = PatternMember(
        of: self, number: newNumber(), loopState: loopState, epoch: epoch,
        PatternMember.Begin(
          cursor: cursor, missed: missed, lag: topics.lag ?? topic.settings.lag ?? .skip,
          isResuming: position?.epoch == epoch.number,
          continues: position.map { epoch.continuing($0.epoch, at: 0) != nil } ?? false),
        matcher: matcher, isAwaited: wasThere)
      member.begins = frame
      member.subscription.attachedEpoch = present
      loopState.add(member.subscription)
      // Removed after the new member has joined, so that the topic always has a subscriber.
      if let former { remove(former, isDeleted: former.topic !== topic && position == nil) }
      makeMembers().add(member)
      if topic.isPaced { pace(member) }
      if wasThere { frames.await(member) }
      if topic.isEpochUnsaved { awaitEpoch(of: member, from: position) }
      takeTurn(member)
    } catch {
      if former == nil { streams.counts.removeMatches(1) }
      loopState.withdraw(from: present)
      throw error
    }
    // The topic may have been removed before the member was in its list.
    if topic.isGone { topic.notify([loopState]) }
  }

  /// Gives a member no turns until the number of its topic's epoch is on disk.
  private func awaitEpoch(of member: PatternMember, from position: TopicPosition?) {
    member.awaitsEpoch = true
    member.knownPosition = position
    let continuation = streams.continuation(of: stream)
    member.topic.whenCommitted { [name = member.name, number = member.number] fault in
      continuation.resume { (pattern: PatternStream) in
        guard let member = pattern.members?[name], member.number == number else { return }
        // If the topic has moved to another node, the member moves there from its former position.
        guard let fault else {
          member.awaitsEpoch = false
          member.knownPosition = nil
          return pattern.takeTurn(member)
        }
        if fault.code != .topicMoved { pattern.fail(fault) }
      }
    }
  }

  private func makeMembers() -> PatternMembers<PatternMember> {
    if let members { return members }
    let made = PatternMembers<PatternMember>()
    members = made
    return made
  }

  /// Called when a topic was deleted, or another node serves it.
  func topicGone(_ member: PatternMember, _ fault: Fault) {
    guard fault.code == .topicMoved else { return lose(member) }
    streams.attempt(stream) { () throws(WireError) in try move(member) }
  }

  /// Joins a member's topic again because the number of its epoch has changed. The next MATCHED contains the new number.
  func epochContinued(_ member: PatternMember) {
    streams.attempt(stream) { () throws(WireError) in
      try join(
        member.topic, startingAt: position(of: member), wasThere: member.isAwaited, after: member.begins)
    }
  }

  /// Moves a topic that another node already serves, although this node hasn't learned yet that its shard moves.
  func giveUp(_ name: String) throws(WireError) {
    if let member = members?[name] { try move(member) }
  }

  private func position(of member: PatternMember) -> TopicPosition {
    member.knownPosition
      ?? TopicPosition(
        topic: member.topic.name, epoch: member.subscription.epochNumber,
        nextOffset: member.subscription.sentThrough)
  }

  /// Moves a member whose topic moves to another node. The subscription continues there at the member's position, and also here if the topic returns.
  private func move(_ member: PatternMember) throws(WireError) {
    guard let members, members.remove(member) else { return }
    let position = position(of: member)
    streams.counts.removeMatches(1)
    remove(member, isDeleted: false)
    if let remote {
      try remote.left(position, number: member.isAnnounced ? member.number : 0)
    } else {
      topics.keep(position)
    }
  }

  private func lose(_ member: PatternMember) {
    guard let members, members.remove(member) else { return }
    streams.counts.removeMatches(1)
    remove(member, isDeleted: true)
    streams.makeReady(self)
  }

  /// Called when the producers of a member's topic become paced.
  func pace(_ member: PatternMember) {
    guard let members, members.paced.add(member), let offer = loan?.paced(), isOpened else { return }
    streams.send(offer, stream: stream)
  }

  /// Detaches a member from its topic.
  ///
  /// - Parameter isDeleted: true to send UNMATCHED for its number; otherwise the topic's next MATCHED replaces the number.
  private func remove(_ member: PatternMember, isDeleted: Bool) {
    if let untold = members?.release(member) { tell(untold) }
    frames.departed(member, isDeleted: isDeleted)
  }
}
