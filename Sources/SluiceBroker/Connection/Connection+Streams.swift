import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceWire

/// What the session's actions mean for topics.
extension Connection {
  /// A page fits the smallest frame that a client may take: a summary has 1,333 bytes at the most.
  private static let topicsPerPage = 40

  var registry: TopicRegistry { context.core.registry }

  func perform(_ action: SessionAction) {
    if action.isRequest { noteUse() }
    switch action {
    case .none: break
    case .append(let stream, let count, let batch): unsafe append(stream, count, batch)
    case .demand(let stream, let granted): demand(stream, granted)
    case .commit(let stream, let offset): commit(stream, offset)
    case .welcome(let agreement): opened(agreement)
    case .authenticate(let agreement): authenticate(agreement)
    case .renew(let stream, let credentials): renew(stream, credentials)
    case .subscribe(let stream, let frame):
      attempt(stream) { () throws(WireError) in
        try checkSubscriptions()
        try subscribeFound(stream, frame)
      }
    case .subscribePattern(let stream, let frame):
      attempt(stream) { () throws(WireError) in
        try checkSubscriptions()
        try subscribePattern(stream, frame)
      }
    case .join(let stream, let frame):
      attempt(stream) { () throws(WireError) in
        try checkSubscriptions()
        try joinFound(stream, frame)
      }
    case .settle(let stream, let frame): settle(stream, frame)
    case .openPublication(let stream, let frame):
      attempt(stream) { () throws(WireError) in
        try checkPublications()
        try openPublication(stream, frame)
      }
    case .complete(let stream, let ending): complete(stream, ending)
    case .cancel(let stream):
      // Up to the end a producer learns what of its records is in the log.
      if case .publication(let publication) = handle(stream) { return cancel(publication) }
      releaseStream(stream)
      send(Cancelled(), stream: stream)
    case .confirmCancel(let stream):
      // It may have ended its topic, which isn't on disk yet.
      releaseStream(stream)
      send(Cancelled(), stream: stream)
    case .fault(let stream, let fault):
      if fault.code == .limitReached { context.core.metrics.add(.refusedOversizes) }
      refuse(stream, fault)
    case .createTopic(let stream, let frame):
      administer(.createTopic, of: frame.topic, stream) { () throws(WireError) in
        try require(.topicCreate, on: frame.topic)
        if let there = registry.find(frame.topic) { try requireInbox(there, for: .topicCreate) }
        let topic = try registry.create(frame.topic, frame.settings, by: quota)
        workBudget.spend(quota.takeTold(), of: .watchers)
        try requireInbox(topic, for: .topicCreate)
        topic.failWhenProducersStayLost(on: context)
        whenCommitted(topic, stream) { $0.describe(topic, to: stream) }
        return true
      }
    case .showTopic(let stream, let name):
      attempt(stream) { () throws(WireError) in
        describe(try topic(name, for: .topicShow), to: stream)
      }
    case .listTopics(let stream, let after, let limit):
      let (page, more) = listTopics(after: after, limit: min(Int(limit), Self.topicsPerPage))
      answer(session.request(on: stream), Topics(topics: page, more: more), to: stream)
    case .deleteTopic(let stream, let name):
      administer(.deleteTopic, of: name, stream) { () throws(WireError) in
        try require(.topicDelete, on: name)
        confirm(try registry.delete(name), to: stream)
        return true
      }
    case .connectTopic(let stream, let name, let isConnected):
      administer(isConnected ? .connectTopic : .disconnectTopic, of: name, stream) { () throws(WireError) in
        try topic(name, for: isConnected ? .topicConnect : .topicDisconnect).connect(isConnected)
        answer(session.request(on: stream), Done(), to: stream)
        return true
      }
    case .listCursors, .moveCursor, .deleteCursor: performCursorRequest(action)
    case .pong(let token): send(Pong(token: token), stream: 0)
    }
  }

  /// Does what may fail for this stream alone.
  func attempt(_ stream: UInt32, _ body: () throws(WireError) -> Void) {
    do {
      try body()
    } catch {
      refuse(stream, Fault(error))
    }
  }

  /// Ends a stream with an error. A producer learns first which of its records are kept.
  func refuse(_ stream: UInt32, _ fault: Fault) {
    if case .publication(let publication) = handle(stream) { acknowledge(publication) }
    if fault.code == .limitReached {
      report(.refused(asClient, peer: peer, WireError(fault.code, fault.message)))
    }
    session.ended(stream)
    releaseStream(stream)
    send(fault, stream: stream)
  }

  // MARK: Subscribers

  func subscribe(_ stream: UInt32, _ frame: Subscribe) throws(WireError) {
    let topic = try topic(
      frame.topic, for: .subscribe, ifMissing: frame.ifMissing, stating: frame.settings)
    let loopState = topic.loopState(on: context)
    if topic.isPaced { loopState.protectEverything() }
    let (epoch, buffered) = topic.attachSubscription(now: context.loop.now)
    do {
      var position: (cursor: LogCursor, missed: UInt64)
      var use: Topic.CursorUse?
      if frame.cursor.isEmpty {
        position = try start(frame, topic, epoch, buffered)
      } else {
        let found = try topic.useCursor(frame, in: epoch, cursorHolder(stream), now: context.loop.now) {
          frame throws(WireError) in try start(frame, topic, epoch, buffered)
        }
        position = (found.cursor, found.missed)
        use = found
      }
      let (cursor, missed) = position
      let liveOffset = max(epoch.log.head, cursor.nextOffset)
      let subscription = Subscription(
        stream: stream, loopState: loopState, epoch: epoch, connection: self, cursor: cursor,
        liveOffset: liveOffset,
        lag: frame.lag, granted: frame.grantedThrough, isResuming: frame.epoch != 0,
        matcher: RecordMatcher(unlessEmpty: frame.filter), wantsProducers: frame.wantsProducers)
      if let use { subscription.durable = DurablePlace(use, name: frame.cursor) }
      loopState.add(subscription)
      setHandle(stream, .subscription(subscription))
      opened(
        subscription,
        Subscribed(
          epoch: epoch.number, nextOffset: cursor.nextOffset, liveOffset: liveOffset,
          gaps: subscription.leavesGaps,
          continues: epoch.continuing(frame.epoch, at: 0) != nil), missed: missed, isNew: use?.isNew ?? false)
    } catch {
      loopState.withdraw(from: epoch)
      throw error
    }
    // It may have been deleted between the look and the entry in its list.
    if topic.isDeleted { topic.announce(to: [loopState]) }
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
    // What producers buffered while nobody listened is for the first who comes and asks for what there is.
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

  private func demand(_ stream: UInt32, _ granted: UInt64) {
    guard case .subscription(let subscription) = handle(stream), subscription.raise(to: granted) else {
      return
    }
    makeReady(subscription)
  }

  // MARK: Requests

  /// Does something for a request when all that has happened to the topic is on disk, if it is durable; unless it was cancelled meanwhile.
  private func whenCommitted(
    _ topic: Topic, of name: String? = nil, _ stream: UInt32, _ body: @escaping @Sendable (Connection) -> Void
  ) {
    guard topic.storage != nil else { return body(self) }
    let request = session.request(on: stream)
    topic.whenCommitted(of: name) { [reference] fault in
      reference.execute { connection in
        guard connection.session.request(on: stream) == request else { return }
        if let fault { connection.refuse(stream, fault) } else { body(connection) }
      }
    }
  }

  /// Answers DONE when what was done to the topic is on disk.
  ///
  /// - Parameter name: of the cursor or group to which it was done; nil for the topic itself.
  func confirm(_ topic: Topic, of name: String? = nil, to stream: UInt32) {
    whenCommitted(topic, of: name, stream) { connection in
      connection.answer(connection.session.request(on: stream), Done(), to: stream)
    }
  }

  private func describe(_ topic: Topic, to stream: UInt32) {
    let request = session.request(on: stream)
    let attached = topic.attached
    workBudget.spend(attached.subscriptions + attached.publications, of: .attachments)
    TopicInspection(topic, showing: shownPeers(of: topic), at: context.loop.now).run { [reference] info in
      reference.execute { $0.answer(request, info, to: stream) }
    }
  }

  /// Answers a request, unless it was cancelled meanwhile.
  func answer(_ request: UInt64?, _ frame: some Frame, to stream: UInt32) {
    if session.answers(request, on: stream) { send(frame, stream: stream) }
  }
}

extension Subscribe {
  /// Returns the frame as if its client knew the epoch `current`, when that continues the epoch that the client knows.
  func translated(to current: TopicEpoch) -> Subscribe {
    guard epoch != 0, epoch != current.number, case .offset(let offset) = start,
      let next = current.continuing(epoch, at: offset)
    else { return self }
    var frame = self
    frame.epoch = current.number
    frame.start = .offset(next)
    return frame
  }
}

extension StartPosition {
  init(_ start: Subscribe.Start) {
    self =
      switch start {
      case .replay: .replay
      case .earliest: .earliest
      case .new: .new
      case .last(let count): .last(count)
      case .offset(let offset): .offset(offset)
      case .time(let time): .time(time)
      }
  }
}
