import SluiceIO
import SluiceLog
import SluiceWire

/// What the session's actions mean for topics.
extension Connection {
  /// A page fits the smallest frame that a client may take: a summary has 1,333 bytes at the most.
  private static let topicsPerPage = 48

  var registry: TopicRegistry { context.core.registry }

  func perform(_ action: SessionAction) {
    switch action {
    case .none: break
    case .append(let stream, let count, let batch): append(stream, count, batch)
    case .demand(let stream, let granted): demand(stream, granted)
    case .commit(let stream, let offset): commit(stream, offset)
    case .welcome(let agreement): opened(agreement)
    case .subscribe(let stream, let frame):
      attempt(stream) { () throws(WireError) in try subscribeFound(stream, frame) }
    case .subscribePattern(let stream, let frame):
      attempt(stream) { () throws(WireError) in try subscribePattern(stream, frame) }
    case .join(let stream, let frame):
      attempt(stream) { () throws(WireError) in try joinFound(stream, frame) }
    case .settle(let stream, let frame): settle(stream, frame)
    case .openPublication(let stream, let frame):
      attempt(stream) { () throws(WireError) in try openPublication(stream, frame) }
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
    case .fault(let stream, let fault): refuse(stream, fault)
    case .createTopic(let stream, let frame):
      attempt(stream) { () throws(WireError) in
        let topic = try registry.create(frame.topic, frame.settings)
        whenCommitted(topic, stream) { $0.describe(topic, to: stream) }
      }
    case .showTopic(let stream, let name):
      attempt(stream) { () throws(WireError) in
        describe(try registry.known(name), to: stream)
      }
    case .listTopics(let stream, let after, let limit):
      let (page, more) = registry.list(after: after, limit: min(Int(limit), Self.topicsPerPage))
      answer(session.request(on: stream), Topics(topics: page, more: more), to: stream)
    case .deleteTopic(let stream, let name):
      attempt(stream) { () throws(WireError) in
        confirm(try registry.delete(name), to: stream)
      }
    case .connectTopic(let stream, let name, let isConnected):
      attempt(stream) { () throws(WireError) in
        try registry.use(name).connect(isConnected)
        answer(session.request(on: stream), Done(), to: stream)
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

  /// Ends a stream with an error.
  func refuse(_ stream: UInt32, _ fault: Fault) {
    session.ended(stream)
    releaseStream(stream)
    send(fault, stream: stream)
  }

  // MARK: Producers

  /// Does something for a request when all that has happened to the topic is on disk, if it is durable; unless it was cancelled meanwhile.
  private func whenCommitted(
    _ topic: Topic, _ stream: UInt32, _ body: @escaping @Sendable (Connection) -> Void
  ) {
    guard topic.storage != nil else { return body(self) }
    let request = session.request(on: stream)
    let loop = context.loop
    topic.whenCommitted { [weak self] in
      loop.execute { [weak self] in
        if let self, session.request(on: stream) == request { body(self) }
      }
    }
  }

  /// Answers DONE, when it is.
  func confirm(_ topic: Topic, to stream: UInt32) {
    whenCommitted(topic, stream) { connection in
      connection.answer(connection.session.request(on: stream), Done(), to: stream)
    }
  }

  private func openPublication(_ stream: UInt32, _ frame: PublishOpen) throws(WireError) {
    let topic = try registry.use(frame.topic)
    guard frame.acknowledgement != .durable || topic.storage != nil else {
      throw WireError(
        .unsupported,
        "topic \(frame.topic) is kept in memory, so nothing in it is durable; ask for acknowledgement \"received\", or create it with storage durable"
      )
    }
    if let fault = topic.storage?.service.refusal { throw WireError(fault.code, fault.message) }
    let loop = context.loop
    let holder = ProducerTable.Holder(connection: id) { [weak self] ticket in
      loop.execute { [weak self] in self?.fenced(stream, ticket) }
    }
    let attachment = try topic.attachPublication(frame, holder, now: loop.now)
    let tap = topic.tap(on: context)
    lastNumber += 1
    let publication = Publication(
      stream: stream, number: lastNumber, tap: tap, connection: self, frame, attachment)
    tap.add(publication)
    setHandle(stream, .publication(publication))
    session.publication(stream, continuesAt: attachment.nextSequence)
    guard publication.waitsForDisk, frame.producer != 0 else { return opened(publication, attachment) }
    // What it published before counts when it is on disk: until then it must not forget it.
    publication.isOpening = true
    whenCommitted(publication) { connection, publication in
      publication.isOpening = false
      connection.opened(publication, attachment)
    }
  }

  /// Tells a producer that it may publish.
  private func opened(_ publication: Publication, _ attachment: Topic.Attachment) {
    let stream = publication.stream
    let demand =
      grantMore(to: publication)
      ?? Demand(grantedThrough: attachment.nextSequence, bytesThrough: 0)
    send(
      PublishOpened(
        epoch: attachment.life.epoch, grantedThrough: demand.grantedThrough,
        bytesThrough: demand.bytesThrough, nextSequence: attachment.nextSequence),
      stream: stream)
    // Something may have happened between the look and the entry in its list; and a source wants to know whether to start.
    topicChanged(publication)
  }

  /// Grants what the topic can take now.
  func grantMore(to publication: Publication) -> Demand? {
    guard session.phase == .open, let credit = session.publication(publication.stream) else { return nil }
    let more = publication.topic.grant(to: credit.held)
    publication.owed.add(more)
    let demand = session.grant(more, to: publication.stream)
    let left = session.publication(publication.stream)?.held ?? GrantLedger.Allowance()
    if left.records > 0, left.bytes > 0 {
      publication.heldUpSince = nil
    } else if publication.heldUpSince == nil {
      publication.heldUpSince = context.loop.now
    }
    return demand
  }

  private func append(_ stream: UInt32, _ count: UInt32, _ batch: UnsafeRawBufferPointer) {
    guard case .publication(let publication) = handle(stream),
      let used = session.publication(stream)?.used(records: UInt64(count), bytes: batch.count)
    else { return }
    guard !publication.hasEnded else {
      let message = "topic \(publication.topic.name) was ended by this producer; publish to another topic"
      return refuse(stream, Fault(code: .topicEnded, message: message))
    }
    publication.owed.subtract(used)
    switch publication.topic.append(
      batch, count: count, at: context.loop.wallClock, in: publication.life, using: used,
      by: publication.ticket)
    {
    case .appended(let lastOffset):
      publication.appended(count, lastOffset: lastOffset)
      makeDue(publication)
    case .unfit(let fault):
      settle(publication)
      refuse(stream, fault)
    case .refused:
      // The topic has ended meanwhile, or the producer is fenced: somebody is about to say so on this stream.
      break
    }
  }

  private func complete(_ stream: UInt32, _ ending: Complete.Ending) {
    guard case .publication(let publication) = handle(stream) else { return }
    settle(publication)
    let topic = publication.topic
    if let fault = topic.end(ending, in: publication.life, by: publication.producer, publication.ticket) {
      releaseStream(stream)
      return send(fault, stream: stream)
    }
    guard topic.storage != nil else { return ended(publication) }
    publication.ends = .withTopic
    whenCommitted(publication) { connection, publication in connection.ended(publication) }
  }

  /// The producer leaves. It is owed the last acknowledgement, which may have to wait for the disk.
  private func cancel(_ publication: Publication) {
    settle(publication)
    guard publication.owesAck, publication.topic.storage?.service.refusal == nil else {
      return ended(publication)
    }
    publication.ends = .alone
    whenCommitted(publication) { connection, publication in connection.ended(publication) }
  }

  /// Does something when all that has happened to the publication's topic is on disk, unless the publication is over by then.
  private func whenCommitted(
    _ publication: Publication, _ body: @escaping @Sendable (Connection, Publication) -> Void
  ) {
    let (stream, loop, number) = (publication.stream, context.loop, publication.number)
    publication.topic.whenCommitted { [weak self] in
      loop.execute { [weak self] in
        guard let self, case .publication(let publication) = handle(stream), publication.number == number
        else { return }
        body(self, publication)
      }
    }
  }

  /// The topic is over, or the publication, as the producer has said.
  private func ended(_ publication: Publication) {
    settle(publication)
    releaseStream(publication.stream)
    send(Cancelled(), stream: publication.stream)
  }

  /// Something about the topic has changed, or its subscribers have: tells the producer what concerns it.
  func topicChanged(_ publication: Publication) {
    let topic = publication.topic
    if let fault = topic.storage?.service.refusal, !publication.isOpening, !topic.isDeleted {
      // Who has left waits for CANCELLED, not for the disk.
      if publication.ends == .alone { return ended(publication) }
      settle(publication)
      return refuse(publication.stream, fault)
    }
    // It waits for the disk, and is told then.
    if publication.ends != nil, !topic.isDeleted { return }
    switch publication.life.condition {
    case .ended: return topicEnded(publication)
    case .superseded: publication.life = topic.life
    case .open, .deleted: break
    }
    if topic.isDeleted { return topicDeleted(publication.stream, name: topic.name) }
    if publication.isSource, !publication.isOpening {
      let isConnected = topic.isConnected
      if isConnected != publication.toldConnected {
        publication.toldConnected = isConnected
        if isConnected {
          send(Connected(), stream: publication.stream)
        } else {
          send(Disconnected(), stream: publication.stream)
        }
      }
    }
    makeDue(publication)
  }

  /// Another producer has ended the topic.
  private func topicEnded(_ publication: Publication) {
    if publication.hasEnded { return }
    settle(publication)
    session.ended(publication.stream)
    releaseStream(publication.stream)
    send(Complete(publication.life.ending ?? .finished), stream: publication.stream)
  }

  /// Another publication has the producer's number now.
  private func fenced(_ stream: UInt32, _ ticket: ProducerTable.Ticket) {
    guard case .publication(let publication) = handle(stream), publication.ticket == ticket else { return }
    settle(publication)
    refuse(stream, .fenced(on: publication.topic.name))
  }

  func topicDeleted(_ stream: UInt32, name: String) {
    refuse(stream, Fault(code: .topicDeleted, message: "topic \(name) was deleted"))
  }

  // MARK: Subscribers

  func subscribe(_ stream: UInt32, _ frame: Subscribe) throws(WireError) {
    let topic = try registry.use(frame.topic)
    let tap = topic.tap(on: context)
    if topic.isPaced { tap.protectEverything() }
    let (life, buffered) = topic.attachSubscription()
    do {
      var position: (cursor: LogCursor, missed: UInt64)
      var use: Topic.CursorUse?
      if frame.cursor.isEmpty {
        position = try start(frame, topic, life, buffered)
      } else {
        let found = try topic.useCursor(frame, in: life, cursorHolder(stream), now: context.loop.now) {
          frame throws(WireError) in try start(frame, topic, life, buffered)
        }
        position = (found.cursor, found.missed)
        use = found
      }
      let (cursor, missed) = position
      let liveOffset = max(life.log.head, cursor.nextOffset)
      let subscription = Subscription(
        stream: stream, tap: tap, life: life, connection: self, cursor: cursor, liveOffset: liveOffset,
        lag: frame.lag ?? topic.settings.lag ?? .skip, granted: frame.grantedThrough,
        isResuming: frame.epoch != 0, matcher: RecordMatcher(unlessEmpty: frame.filter))
      if let use { subscription.durable = DurablePlace(use, name: frame.cursor) }
      tap.add(subscription)
      setHandle(stream, .subscription(subscription))
      opened(
        subscription,
        Subscribed(
          epoch: life.epoch, nextOffset: cursor.nextOffset, liveOffset: liveOffset,
          gaps: subscription.leavesGaps,
          continues: life.continuing(frame.epoch, at: 0) != nil), missed: missed, isNew: use?.isNew ?? false)
    } catch {
      tap.withdraw()
      throw error
    }
    // It may have been deleted between the look and the entry in its list.
    if topic.isDeleted { topic.announce(to: [tap]) }
  }

  /// Where a subscription begins, and how many of the records that it asked for are gone.
  func start(
    _ frame: Subscribe, _ topic: Topic, _ life: TopicLife, _ buffered: UInt64?
  ) throws(WireError) -> (cursor: LogCursor, missed: UInt64) {
    let frame = frame.translated(to: life)
    guard frame.epoch == 0 || frame.epoch == life.epoch else {
      throw WireError(
        .epochChanged,
        "topic \(frame.topic) was started anew; subscribe again without an epoch to get what is there now")
    }
    var (cursor, missed) = life.cursor(
      at: StartPosition(frame.start), now: context.loop.wallClock, resuming: frame.epoch != 0)
    // What producers buffered while nobody listened is for the first who comes and asks for what there is.
    if let buffered, buffered < cursor.nextOffset, frame.start == .replay || frame.start == .earliest {
      cursor = life.cursor(at: .offset(buffered), now: nil, resuming: true).cursor
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

  private func describe(_ topic: Topic, to stream: UInt32) {
    let loop = context.loop
    let request = session.request(on: stream)
    TopicInspection(topic).run { [weak self] info in
      loop.execute { [weak self] in self?.answer(request, info, to: stream) }
    }
  }

  /// Answers a request, unless it was cancelled meanwhile.
  func answer(_ request: UInt64?, _ frame: some Frame, to stream: UInt32) {
    if session.answers(request, on: stream) { send(frame, stream: stream) }
  }
}

extension Subscribe {
  /// The frame of somebody who knows another life of the topic, which this one continues, as if it were this one.
  func translated(to life: TopicLife) -> Subscribe {
    guard epoch != 0, epoch != life.epoch, case .offset(let offset) = start,
      let next = life.continuing(epoch, at: offset)
    else { return self }
    var frame = self
    frame.epoch = life.epoch
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
