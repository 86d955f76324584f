import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceSession
import SluiceTopics
import SluiceWire

// How subscriptions begin: where they start, which for durable topics the store may have to be asked; and what has to be on disk before.
extension Connection {
  // MARK: To a topic

  func subscribe(_ stream: UInt32, _ frame: Subscribe) throws(WireError) {
    let topic = try topic(frame.topic, for: .subscribe, ifMissing: frame.ifMissing, stating: frame.settings)
    try afterStart(frame.start, of: topic, stream) { connection, start, granted throws(WireError) in
      var frame = frame
      if let start { frame.start = start }
      if let granted { frame.grantedThrough = granted }
      try connection.subscribeFound(stream, frame)
    }
  }

  private func subscribeFound(_ stream: UInt32, _ frame: Subscribe) throws(WireError) {
    let topic = try topic(frame.topic, for: .subscribe, ifMissing: frame.ifMissing, stating: frame.settings)
    try attach(to: topic) { loopState, epoch, buffered throws(WireError) in
      var position: (cursor: LogCursor, missed: UInt64)
      var use: Topic.CursorUse?
      if frame.cursor.isEmpty {
        position = try start(frame, topic, epoch, buffered)
      } else {
        let continuation = continuation(of: stream)
        let holder = CursorTable.Holder { _, loss in
          continuation.resume { (subscription: Subscription) in subscription.cursorLost(loss) }
        }
        let found = try topic.useCursor(frame, in: epoch, holder, now: context.loop.now) {
          frame throws(WireError) in try start(frame, topic, epoch, buffered)
        }
        position = (found.cursor, found.missed)
        use = found
      }
      let (cursor, missed) = position
      let liveOffset = max(epoch.log.head, cursor.nextOffset)
      let subscription = Subscription(
        stream: stream, loopState: loopState, epoch: epoch, connection: self, cursor: cursor,
        liveOffset: liveOffset, lag: frame.lag, granted: frame.grantedThrough, isResuming: frame.epoch != 0,
        matcher: RecordMatcher(unlessEmpty: frame.filter), wantsProducers: frame.wantsProducers)
      if let use { subscription.durable = DurablePlace(use, name: frame.cursor) }
      loopState.add(subscription)
      attach(subscription, to: stream)
      subscription.opened(
        Subscribed(
          epoch: epoch.number, nextOffset: cursor.nextOffset, liveOffset: liveOffset,
          gaps: subscription.leavesGaps, continues: epoch.continuing(frame.epoch, at: 0) != nil),
        missed: missed, isNew: use?.isNew ?? false)
    }
  }

  /// Counts a subscription of this loop to the topic, unless `body` throws.
  private func attach(
    to topic: Topic,
    _ body: (_ loopState: TopicLoopState, _ epoch: TopicEpoch, _ buffered: UInt64?) throws(WireError) -> Void
  ) throws(WireError) {
    let loopState = topic.loopState(on: context.topics)
    if topic.isPaced { loopState.protectEverything() }
    let (epoch, buffered) = topic.attachSubscription(now: context.loop.now)
    do {
      try body(loopState, epoch, buffered)
    } catch {
      loopState.withdraw(from: epoch)
      throw error
    }
    // It may have been deleted between the look and the entry in its list.
    if topic.isDeleted { topic.notify([loopState]) }
  }

  /// Where a subscription begins, and how many of the records that it asked for are gone.
  func start(
    _ frame: Subscribe, _ topic: Topic, _ epoch: TopicEpoch, _ buffered: UInt64?
  ) throws(WireError) -> (cursor: LogCursor, missed: UInt64) {
    let frame = frame.translated(to: epoch)
    guard frame.epoch == 0 || frame.epoch == epoch.number else {
      throw WireError(
        .epochChanged,
        "topic \(frame.topic) was started anew; subscribe again without an epoch to get what is there now")
    }
    var (cursor, missed) = epoch.cursor(
      at: StartPosition(frame.start), now: context.loop.wallClock, resuming: frame.epoch != 0)
    // What producers buffered while there was no subscriber is for the first that comes and asks for what there is.
    if let buffered, buffered < cursor.nextOffset, frame.start == .replay || frame.start == .earliest {
      cursor = epoch.cursor(at: .offset(buffered), now: nil, resuming: true).cursor
    }
    guard missed == 0 || (frame.lag ?? topic.settings.lag) != .fail else {
      throw WireError(
        .lagged,
        "\(missed) records of \(frame.topic) were dropped already; subscribe to what is left, or with lag policy skip"
      )
    }
    return (cursor, missed)
  }

  // MARK: To a group

  func join(_ stream: UInt32, _ frame: JoinGroup) throws(WireError) {
    let topic = try topic(for: frame)
    try afterStart(frame.start, of: topic, stream) { connection, start, granted throws(WireError) in
      var frame = frame
      if let start { frame.start = start }
      if let granted { frame.grantedThrough = granted }
      try connection.joinStored(stream, frame, topic)
    }
  }

  /// Joins a group that is on disk, if its topic is durable: one that is made for this is brought there first, or a crash would take it from under
  /// its members.
  private func joinStored(_ stream: UInt32, _ frame: JoinGroup, _ topic: Topic) throws(WireError) {
    guard topic.storage != nil, !topic.hasGroup(frame.group) else { return try joinFound(stream, frame) }
    try frame.validate()
    if let fault = topic.storageRefusal { throw WireError(fault.code, fault.message) }
    _ = try topic.group(
      for: frame, buffered: topic.bufferedFrom, on: context.topics)
    let continuation = pending(stream)
    topic.whenCommitted(of: frame.group) { fault in
      continuation.resume { connection in
        if let fault { return connection.refuse(stream, fault) }
        var frame = frame
        // The client may have asked for more meanwhile.
        frame.grantedThrough = connection.session.granted(stream) ?? frame.grantedThrough
        connection.attempt(stream) { () throws(WireError) in try connection.joinFound(stream, frame) }
      }
    }
  }

  private func joinFound(_ stream: UInt32, _ frame: JoinGroup) throws(WireError) {
    try frame.validate()
    let topic = try topic(for: frame)
    guard topic.settings.compact != true else {
      throw WireError(
        .unsupported,
        "topic \(frame.topic) keeps the newest record of each key, and a group has to get them all; join one of a topic that isn't compact"
      )
    }
    try attach(to: topic) { loopState, epoch, buffered throws(WireError) in
      let (member, place) = try enter(stream, frame, topic, loopState, buffered)
      member.attachedEpoch = epoch
      loopState.add(member, of: member.group)
      attach(member, to: stream)
      send(
        Subscribed(
          epoch: member.group.epoch.number, nextOffset: place.next, liveOffset: place.live, gaps: true),
        stream: stream)
      send(Live(nextOffset: place.next), stream: stream)
      makeReady(member)
    }
  }

  /// A member of the group, which is made if there is none.
  private func enter(
    _ stream: UInt32, _ frame: JoinGroup, _ topic: Topic, _ loopState: TopicLoopState, _ buffered: UInt64?
  ) throws(WireError) -> (member: GroupMember, place: (next: UInt64, live: UInt64)) {
    while true {
      let group = try topic.group(
        for: frame, buffered: buffered, on: context.topics)
      let member = GroupMember(
        stream: stream, loopState: loopState, group: group, connection: self, granted: frame.grantedThrough)
      // A group that was deleted or put elsewhere between the two is looked up again.
      if let place = group.join(member, now: context.loop.now) { return (member, place) }
    }
  }

  // MARK: Where to start

  /// Opens a subscription where it is to start: at once, or when the store has said where that is, with what was granted by then.
  private func afterStart(
    _ start: Subscribe.Start, of topic: Topic, _ stream: UInt32,
    _ open: @escaping @Sendable (Connection, Subscribe.Start?, _ granted: UInt64?) throws(WireError) -> Void
  ) throws(WireError) {
    let isAsked = findStart(start, of: topic, pending(stream)) { connection, start in
      let granted = connection.session.granted(stream)
      connection.attempt(stream) { () throws(WireError) in try open(connection, start, granted) }
    }
    if !isAsked { try open(self, nil, nil) }
  }

  /// Has a subscription wait for the store.
  private func pending(_ stream: UInt32) -> StreamContinuation {
    attach(PendingSubscription(), to: stream)
    return continuation(of: stream)
  }

  /// Asks the store where a subscription or cursor begins, if nothing else knows, and goes on with that; unless the stream is over by then.
  ///
  /// - Returns: whether it was asked.
  func findStart(
    _ start: Subscribe.Start, of topic: Topic, _ continuation: @autoclosure () -> StreamContinuation,
    _ body: @escaping @Sendable (Connection, Subscribe.Start) -> Void
  ) -> Bool {
    guard case .time(let time) = start, let storage = topic.storage,
      topic.epoch.needsStore(for: .time(time))
    else { return false }
    let continuation = continuation()
    storage.service.find(time, in: storage) { offset in
      continuation.resume { body($0, .offset(offset)) }
    }
    return true
  }
}
