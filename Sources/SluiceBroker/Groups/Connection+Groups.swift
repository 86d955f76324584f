import SluiceAccess
import SluiceIO
import SluiceWire

/// What the session's actions mean for groups.
extension Connection {
  func join(_ stream: UInt32, _ frame: JoinGroup) throws(WireError) {
    try frame.validate()
    let topic = try topic(for: frame)
    guard topic.settings.compact != true else {
      throw WireError(
        .unsupported,
        "topic \(frame.topic) keeps the newest record of each key, and a group has to get them all; join one of a topic that isn't compact"
      )
    }
    let loopState = topic.loopState(on: context)
    if topic.isPaced { loopState.protectEverything() }
    let (epoch, buffered) = topic.attachSubscription(now: context.loop.now)
    do {
      let (member, place) = try enter(stream, frame, topic, loopState, buffered)
      member.attachedEpoch = epoch
      loopState.add(member)
      setHandle(stream, .subscription(member))
      send(
        Subscribed(
          epoch: member.group.epoch.number, nextOffset: place.next, liveOffset: place.live, gaps: true),
        stream: stream)
      send(Live(nextOffset: place.next), stream: stream)
      makeReady(member)
    } catch {
      loopState.withdraw(from: epoch)
      throw error
    }
    // It may have been deleted between the look and the entry in its list.
    if topic.isDeleted { topic.announce(to: [loopState]) }
  }

  /// A member of the group, which is made if there is none.
  private func enter(
    _ stream: UInt32, _ frame: JoinGroup, _ topic: Topic, _ loopState: TopicLoopState, _ buffered: UInt64?
  ) throws(WireError) -> (member: GroupMember, place: (next: UInt64, live: UInt64)) {
    while true {
      let group = try topic.group(
        for: frame, buffered: buffered, limits: context.core.configuration.limits, on: context)
      let member = GroupMember(
        stream: stream, loopState: loopState, group: group, connection: self, granted: frame.grantedThrough)
      // A group that was deleted or put elsewhere between the two is looked up again.
      if let place = group.join(member) { return (member, place) }
    }
  }

  func settle(_ stream: UInt32, _ frame: Settle) {
    guard case .subscription(let consumer) = handle(stream), let member = consumer as? GroupMember else {
      return refuse(
        stream,
        Fault(code: .unsupported, message: "SETTLE is for members of a group; this subscription isn't one"))
    }
    settle(frame, in: member.group)
  }

  /// Settles as many records as the turn's workBudget lasts for; the rest is for the next turn.
  func settle(_ frame: Settle, in group: Group) {
    let (looked, rest) = group.settle(frame, atMost: workBudget.left(.groupRecords), on: context)
    workBudget.spend(looked, of: .groupRecords)
    if let rest { goOnLater(.settle(rest, group)) }
  }
}
