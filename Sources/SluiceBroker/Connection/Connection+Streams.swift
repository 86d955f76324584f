import SluiceIO
import SluiceLog
import SluiceWire

/// What the session's actions mean for topics.
extension Connection {
  /// A page fits the smallest frame that a client may take: a summary has 1,333 bytes at the most.
  private static let topicsPerPage = 48

  private var registry: TopicRegistry { context.core.registry }

  func perform(_ action: SessionAction) {
    switch action {
    case .none: break
    case .append(let stream, let count, let batch): append(stream, count, batch)
    case .demand(let stream, let granted): demand(stream, granted)
    case .welcome(let agreement): opened(agreement)
    case .subscribe(let stream, let frame):
      attempt(stream) { () throws(WireError) in try subscribe(stream, frame) }
    case .openPublication(let stream, let frame):
      attempt(stream) { () throws(WireError) in try openPublication(stream, frame) }
    case .complete(let stream, let ending): complete(stream, ending)
    case .cancel(let stream):
      // Up to the end a producer learns what of its records is in the log.
      if case .publication(let publication) = handle(stream) { settle(publication) }
      releaseStream(stream)
      send(Cancelled(), stream: stream)
    case .confirmCancel(let stream): send(Cancelled(), stream: stream)
    case .fault(let stream, let fault): refuse(stream, fault)
    case .createTopic(let stream, let frame):
      attempt(stream) { () throws(WireError) in
        describe(try registry.create(frame.topic, frame.settings), to: stream)
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
        try registry.delete(name)
        answer(session.request(on: stream), Done(), to: stream)
      }
    case .pong(let token): send(Pong(token: token), stream: 0)
    }
  }

  /// Does what may fail for this stream alone.
  private func attempt(_ stream: UInt32, _ body: () throws(WireError) -> Void) {
    do {
      try body()
    } catch {
      refuse(stream, Fault(error))
    }
  }

  /// Ends a stream with an error.
  private func refuse(_ stream: UInt32, _ fault: Fault) {
    session.ended(stream)
    releaseStream(stream)
    send(fault, stream: stream)
  }

  // MARK: Producers

  private func openPublication(_ stream: UInt32, _ frame: PublishOpen) throws(WireError) {
    let topic = try registry.use(frame.topic)
    if let refusal = topic.refusal { throw WireError(refusal.code, refusal.message) }
    guard frame.acknowledgement != .durable else {
      throw WireError(
        .unsupported,
        "topic \(frame.topic) is kept in memory, so nothing in it is durable; ask for acknowledgement \"received\""
      )
    }
    let tap = topic.tap(on: context)
    let publication = Publication(
      stream: stream, tap: tap, connection: self, acknowledgement: frame.acknowledgement)
    tap.add(publication)
    setHandle(stream, .publication(publication))
    send(
      PublishOpened(epoch: topic.epoch, grantedThrough: session.publication(stream)?.granted ?? 0),
      stream: stream)
    // It may have ended between the look and the entry in its list.
    if topic.condition != .open { tap.wake() }
  }

  private func append(_ stream: UInt32, _ count: UInt32, _ batch: UnsafeRawBufferPointer) {
    guard case .publication(let publication) = handle(stream) else { return }
    switch publication.topic.append(batch, count: count, at: context.loop.wallClock) {
    case .appended(let lastOffset):
      publication.appended(count, lastOffset: lastOffset)
      makeDue(publication)
    case .refused:
      // The topic has ended meanwhile; its tap is about to say so on this stream.
      break
    }
  }

  private func complete(_ stream: UInt32, _ ending: Complete.Ending) {
    guard case .publication(let publication) = handle(stream) else { return }
    settle(publication)
    releaseStream(stream)
    if let fault = publication.topic.end(ending) {
      send(fault, stream: stream)
    } else {
      send(Cancelled(), stream: stream)
    }
  }

  /// Another producer has ended the topic.
  func topicEnded(_ publication: Publication) {
    settle(publication)
    session.ended(publication.stream)
    releaseStream(publication.stream)
    send(Complete(publication.topic.ending ?? .finished), stream: publication.stream)
  }

  func topicDeleted(_ stream: UInt32, name: String) {
    refuse(stream, Fault(code: .topicDeleted, message: "topic \(name) was deleted"))
  }

  // MARK: Subscribers

  private func subscribe(_ stream: UInt32, _ frame: Subscribe) throws(WireError) {
    let topic = try registry.use(frame.topic)
    guard frame.epoch == 0 || frame.epoch == topic.epoch else {
      throw WireError(
        .epochChanged,
        "topic \(frame.topic) was started anew; subscribe again without an epoch to get what is there now")
    }
    let (cursor, missed) = topic.log.cursor(
      at: StartPosition(frame.start), now: context.loop.wallClock, resuming: frame.epoch != 0)
    guard missed == 0 || frame.lag == .skip else {
      throw WireError(
        .lagged,
        "\(missed) records of \(frame.topic) were dropped already; subscribe to what is left, or with lag policy skip"
      )
    }
    let tap = topic.tap(on: context)
    let liveOffset = max(topic.log.head, cursor.nextOffset)
    let subscription = Subscription(
      stream: stream, tap: tap, connection: self, cursor: cursor, liveOffset: liveOffset, lag: frame.lag,
      granted: frame.grantedThrough)
    tap.add(subscription)
    setHandle(stream, .subscription(subscription))
    send(
      Subscribed(epoch: topic.epoch, nextOffset: cursor.nextOffset, liveOffset: liveOffset), stream: stream)
    if missed > 0 { send(Lag(missed: missed, nextOffset: cursor.nextOffset), stream: stream) }
    makeReady(subscription)
    // It may have been deleted between the look and the entry in its list.
    if topic.condition == .deleted { tap.wake() }
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
  private func answer(_ request: UInt64?, _ frame: some Frame, to stream: UInt32) {
    if session.answers(request, on: stream) { send(frame, stream: stream) }
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
