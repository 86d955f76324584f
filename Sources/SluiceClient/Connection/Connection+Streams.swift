import ReactiveCore
import SluiceIO
import SluiceSession
import SluiceWire

// What a connection does for subscribers, producers and requests.

// MARK: - Frames in

extension Connection {
  /// - Throws: when a batch isn't what it says.
  func perform(_ action: ClientAction) throws(WireError) {
    switch action {
    case .none, .cancelled: break

    case .deliver(let stream, let header, let batch):
      guard case .subscription(let bridge) = handle(stream) else { return }
      try unsafe bridge.receive(header, batch, reusing: &lastBuffer)
      noteDue(bridge)
    case .subscribed(let stream, let frame):
      guard case .subscription(let bridge) = handle(stream) else { return }
      try bridge.subscribed(frame)
      sendSettlements(of: bridge)
      noteDue(bridge)
    case .deliveries(let stream, let count):
      if case .subscription(let bridge) = handle(stream) { bridge.delivered(again: count) }
    case .live(let stream, let frame):
      guard case .subscription(let bridge) = handle(stream) else { return }
      bridge.live(frame)
      noteDue(bridge)
    case .producers(let stream, let count):
      guard case .subscription(let bridge) = handle(stream) else { return }
      bridge.producers(count)
      noteDue(bridge)
    case .lagged(let stream, let frame):
      guard case .subscription(let bridge) = handle(stream) else { return }
      try bridge.lagged(frame)
      noteDue(bridge)
    case .matched(let stream, let frame):
      guard case .subscription(let bridge) = handle(stream) else { return }
      if let error = try bridge.matched(frame) {
        cancel(stream)
        return bridge.receive(completion: .failure(error))
      }
      noteDue(bridge)
    case .unmatched(let stream, let number):
      guard case .subscription(let bridge) = handle(stream) else { return }
      try bridge.unmatched(number)
      noteDue(bridge)
    case .selectedTopic(let stream, let number):
      guard case .subscription(let bridge) = handle(stream) else { return }
      try bridge.turn(to: number)
      noteDue(bridge)
    case .topicEnded(let stream, let ending):
      guard case .subscription(let bridge) = handle(stream) else { return }
      try bridge.topicEnded(ending)
      noteDue(bridge)

    case .publicationOpened(let stream, let next):
      guard case .publication(let publication) = handle(stream) else { return }
      try publication.resume(at: next)
      noteDue(publication)
    case .granted(let stream):
      if case .publication(let publication) = handle(stream) { noteDue(publication) }
    case .acknowledged(let stream, let frame):
      if case .publication(let publication) = handle(stream), publication.acknowledged(frame) {
        noteDue(publication)
      }
    case .connection(let stream, let isConnected):
      if case .publication(let publication) = handle(stream) { publication.connected(isConnected) }
    case .completed(let stream, let startedOver):
      if case .publication(let publication) = takeHandle(stream),
        publication.completed(startedOver: startedOver)
      {
        open(publication)
      }

    case .ended(let stream, let ending): ended(stream, ending)
    case .refused(let stream, let fault): refused(stream, fault)

    case .topicInfo(let stream, let frame): answer(stream, .info(frame))
    case .topics(let stream, let frame): answer(stream, .topics(frame))
    case .cursors(let stream, let frame): answer(stream, .cursors(frame))
    case .done(let stream): answer(stream, .done)
    case .authenticated(let stream, let frame): answer(stream, .authenticated(frame))

    case .opened(let welcome): opened(welcome)
    case .answerPing(let token): send(Pong(token: token), stream: 0)
    case .pong(let token):
      if let ping = pings.removeValue(forKey: token) {
        ping.request.complete(.success(.pong(loop.now - ping.sent)), loop)
      }
    case .goAway(let frame): leaving(frame)
    case .failed(let fault): failed(fault)
    }
  }

  private func ended(_ stream: UInt32, _ ending: Complete.Ending) {
    switch takeHandle(stream) {
    case .subscription(let bridge):
      switch ending {
      case .finished: bridge.receive(completion: .finished)
      case .failure(let code, let message):
        bridge.receive(
          completion: .failure(ClientError(failureOf: bridge.plan.topic, code: code, message: message)))
      }
      commitLate(bridge, stream)
    case .publication(let publication): publication.topicEnded(ending)
    case nil, .request: break
    }
  }

  private func refused(_ stream: UInt32, _ fault: Fault) {
    let attachment = takeHandle(stream)
    // It was on its way while the broker said that it is leaving.
    if fault.code == .shuttingDown, core.reconnects, let attachment { return wait(attachment) }
    switch attachment {
    case .subscription(let bridge):
      // The offsets that it knows are those of another life.
      if fault.code == .epochChanged, bridge.startOver() { return open(bridge) }
      bridge.receive(completion: .failure(ClientError(fault, topic: bridge.plan.topic)))
    case .publication(let publication):
      if fault.code == .epochChanged, publication.startOver() { return open(publication) }
      let error = ClientError(fault, topic: publication.topic)
      if fault.code.isOfStorage, core.hold(publication, error) { return }
      publication.end(.failure(error))
    case .request(let request):
      request.complete(.failure(ClientError(fault, topic: request.topic)), loop)
    case nil: break
    }
  }

  private func answer(_ stream: UInt32, _ answer: Request.Answer) {
    if case .request(let request) = takeHandle(stream) { request.complete(.success(answer), loop) }
  }
}

// MARK: - Commands

extension Connection {
  func perform(_ command: Command) {
    switch command {
    case .open(let bridge): open(bridge)
    case .demand(let bridge):
      bridge.demandNoted()
      bridge.drain()
      noteDue(bridge)
    case .settle(let bridge): sendSettlements(of: bridge)
    case .cancel(let bridge):
      // What was said before is told before.
      sendSettlements(of: bridge)
      tellCommit(bridge)
      if bridge.phase == .open { cancel(bridge.stream) }
      core.unpark(&bridge.parking)
      bridge.forget()
      settleLate(bridge)
    case .openPublication(let publication): open(publication)
    case .advance(let publication): noteDue(publication)
    case .becomeSource(let publication): reopen(publication)
    case .request(let request): perform(request)
    case .close(let error): core.close(error)
    }
  }

  /// Gives a stream to somebody who had one on another connection, or has waited for this one.
  func adopt(_ attachment: Attachment) {
    switch attachment {
    case .subscription(let bridge):
      bridge.parking = nil
      open(bridge)
    case .publication(let publication):
      publication.parking = nil
      open(publication)
    case .request(let request):
      request.parking = nil
      if !request.isOver { perform(request) }
    }
  }

  /// The broker is leaving, and another connection will come: what is new waits for that.
  private var isLeaving: Bool { departure != nil && core.reconnects }

  private func wait(_ attachment: Attachment) {
    switch attachment {
    case .subscription(let bridge): core.park(bridge)
    case .publication(let publication): core.park(publication)
    case .request(let request): core.park(request)
    }
  }

  private func open(_ bridge: RemoteSubscription) {
    if bridge.isCancelled { return bridge.forget() }
    if isLeaving { return core.park(bridge) }
    // A group is one topic's.
    let isPattern = bridge.plan.isPattern && bridge.plan.membership == nil
    if let error = refusal(bridge.plan) { return bridge.receive(completion: .failure(error)) }
    if isPattern { return openPattern(bridge) }
    let (frame, granted) = bridge.opening()
    let isShared = if case .join = frame { true } else { false }
    let stream = session.openSubscription(
      granted: granted, isShared: isShared, commits: !isShared && bridge.plan.cursor != nil)
    guard let stream else {
      return bridge.receive(completion: .failure(tooManyStreams))
    }
    setHandle(stream, .subscription(bridge))
    bridge.opened(on: stream)
    switch frame {
    case .subscribe(let frame): send(frame, stream: stream)
    case .join(let frame): send(frame, stream: stream)
    }
  }

  private func openPattern(_ bridge: RemoteSubscription) {
    let largest = min(Int(welcome?.maximumFrame ?? 0), Self.positionsSize) - Self.positionsOverhead
    guard let (first, others) = bridge.openingPattern(frameSize: largest) else { return }
    guard let stream = session.openSubscription(granted: first.grantedThrough, isPattern: true) else {
      return bridge.receive(completion: .failure(tooManyStreams))
    }
    setHandle(stream, .subscription(bridge))
    bridge.opened(on: stream)
    send(first, stream: stream)
    for frame in others { send(frame, stream: stream) }
  }

  /// Positions are sent in frames of about this, of which less than the other is for what else is in SUBSCRIBE_PATTERN.
  private static let positionsSize = 256 << 10
  private static let positionsOverhead = 40 << 10

  private func open(_ publication: Publication) {
    if isLeaving { return core.park(publication) }
    if let error = refusal(publication.topic) { return publication.end(.failure(error)) }
    let frame = publication.opening()
    guard let stream = session.openPublication(from: frame.firstSequence, isSource: frame.role == .source)
    else {
      return publication.end(.failure(tooManyStreams))
    }
    setHandle(stream, .publication(publication))
    publication.opened(on: stream)
    send(frame, stream: stream)
  }

  /// A publication has become a source: opens it once more unless the broker knows. What isn't acknowledged is sent again, and
  /// taken once.
  private func reopen(_ publication: Publication) {
    guard publication.stream != 0, publication.isSource, !isLeaving else { return }
    guard !publication.isOpenedAsSource else { return publication.tellSources() }
    cancel(publication.stream)
    publication.interrupted()
    open(publication)
  }

  /// Asks the broker of this connection, and no other.
  func ask(_ request: Request) {
    guard departure == nil else {
      return request.complete(.failure(departure ?? .closedHere), loop)
    }
    perform(request)
  }

  private func perform(_ request: Request) {
    request.start(core)
    if isLeaving { return core.park(request) }
    if case .ping = request.question {
      let token = session.makeToken()
      pings[token] = (loop.now, request)
      return send(Ping(token: token), stream: 0)
    }
    if let error = refusal(request.topic) { return request.complete(.failure(error), loop) }
    guard let stream = session.openRequest() else {
      return request.complete(.failure(tooManyStreams), loop)
    }
    setHandle(stream, .request(request))
    switch request.question {
    case .topics(let frame): send(frame, stream: stream)
    case .show(let frame): send(frame, stream: stream)
    case .create(let frame): send(frame, stream: stream)
    case .delete(let frame): send(frame, stream: stream)
    case .connect(let frame): send(frame, stream: stream)
    case .disconnect(let frame): send(frame, stream: stream)
    case .cursors(let frame): send(frame, stream: stream)
    case .moveCursor(let frame): send(frame, stream: stream)
    case .deleteCursor(let frame): send(frame, stream: stream)
    case .authenticate(let frame): send(frame, stream: stream)
    case .ping: break
    }
  }

  /// Why nothing can be opened on `topic`, if so.
  private func refusal(_ topic: String?, isPattern: Bool = false) -> ClientError? {
    if let departure { return departure }
    guard let topic else { return nil }
    do {
      if isPattern { _ = try TopicPattern(topic) } else { try TopicName.validate(topic) }
      return nil
    } catch {
      return ClientError(error, topic: topic)
    }
  }

  /// Why nothing can be opened as a plan says, if so.
  private func refusal(_ plan: SubscriptionPlan) -> ClientError? {
    // A group is one topic's.
    let isPattern = plan.isPattern && plan.membership == nil
    if let error = refusal(plan.topic, isPattern: isPattern) { return error }
    do {
      try plan.filter.validate()
      if let cursor = plan.cursor?.name { try Self.validate(cursor, on: plan.topic) }
      return nil
    } catch {
      return error
    }
  }

  private static func validate(_ cursor: String, on topic: String) throws(ClientError) {
    do {
      try TopicName.validate(cursor, as: "cursor")
    } catch {
      throw ClientError(error, topic: topic)
    }
  }

  private var tooManyStreams: ClientError {
    ClientError(
      .limitReached,
      "this connection has \(welcome?.maximumStreams ?? 0) subscriptions, publications and requests, which is as many as "
        + "the broker takes; end some, or connect once more")
  }

  private func cancel(_ stream: UInt32) {
    _ = takeHandle(stream)
    if session.cancel(stream) { send(Cancel(), stream: stream) }
  }
}

// MARK: - Frames out

extension Connection {
  private func noteDue(_ bridge: RemoteSubscription) {
    guard !bridge.isDue, bridge.phase == .open || bridge.commitStream != 0 else { return }
    bridge.isDue = true
    dueSubscriptions.append(bridge)
    core.flushSoon()
  }

  /// One DEMAND per subscription and turn, however many values asked for more.
  func sendGrants() {
    // A broker that doesn't read gets no grants: what it has not been told can be said later, all in one.
    guard !dueSubscriptions.isEmpty, output.count < Self.outputLimit else { return }
    for bridge in dueSubscriptions {
      bridge.isDue = false
      tellCommit(bridge)
      guard bridge.phase == .open, !bridge.isCancelled else {
        settleLate(bridge)
        continue
      }
      let granted = bridge.nextGrant()
      if session.grant(bridge.stream, through: granted) {
        output.append(Demand(grantedThrough: granted), stream: bridge.stream)
      }
    }
    dueSubscriptions.removeAll(keepingCapacity: dueSubscriptions.capacity <= 64)
  }

  /// What a member of a group has said of its records, runs of them together.
  private func sendSettlements(of bridge: RemoteSubscription) {
    for run in bridge.takeSettlements() {
      send(
        Settle(run.verdict, delivery: run.delivery, firstOffset: run.first, count: run.count),
        stream: bridge.stream)
    }
  }

  /// Tells a durable cursor how far its subscriber has come, if that is news.
  private func tellCommit(_ bridge: RemoteSubscription) {
    let stream = bridge.commitStream
    if let offset = bridge.nextCommit() { output.append(Commit(nextOffset: offset), stream: stream) }
  }

  /// The topic has ended on the stream of a subscription that may still have something to commit.
  private func commitLate(_ bridge: RemoteSubscription, _ stream: UInt32) {
    guard bridge.commits != nil else { return }
    bridge.commitLate(on: stream)
    lateCommits.append(bridge)
    tellCommit(bridge)
    settleLate(bridge)
    core.flushSoon()
  }

  /// Gives the stream's number back when there is nothing left to commit on it.
  private func settleLate(_ bridge: RemoteSubscription) {
    guard bridge.phase != .open, bridge.commitStream != 0, bridge.isDoneCommitting else { return }
    session.releaseCommitting(bridge.commitStream)
    bridge.commitLate(on: 0)
    lateCommits.removeAll { $0 === bridge }
  }

  /// The client is closed: what its subscribers have dealt with isn't lost with it.
  func sendLastCommits() {
    for case .subscription(let bridge)? in handles { tellCommit(bridge) }
    for bridge in lateCommits { tellCommit(bridge) }
  }

  private func noteDue(_ publication: Publication) {
    guard !publication.isDue, publication.isOpen else { return }
    publication.isDue = true
    duePublications.append(publication)
    core.flushSoon()
  }

  /// Takes what is granted from the publications that have something, in turn, until enough waits for the transport.
  func servePublications() {
    guard !isLeaving else {
      // A broker that is leaving takes nothing any more; they come back with the next connection.
      for publication in duePublications { publication.isDue = false }
      return duePublications.removeAll()
    }
    var next = 0
    while next < duePublications.count, output.count < Self.outputLimit {
      let publication = duePublications[next]
      next += 1
      publication.isDue = false
      if serve(publication) { noteDue(publication) }
    }
    duePublications.removeFirst(next)
  }

  /// Returns true when there is more to send that is granted.
  private func serve(_ publication: Publication) -> Bool {
    guard publication.isOpen else { return false }
    let stream = publication.stream
    let available = session.available(stream)
    if available > 0 { publish(from: publication, atMost: available) }
    publication.fill(granted: session.available(stream))
    switch publication.outlook {
    case .more: return session.available(stream) > 0
    case .idle, .blocked: break
    case .complete(let ending):
      if session.completePublication(stream) {
        publication.completionSent()
        output.append(Complete(ending), stream: stream)
      }
    case .release:
      cancel(stream)
      publication.end(.failure(.closedHere))
    }
    return false
  }

  /// Puts one PUBLISH together, straight in the output.
  private func publish(from publication: Publication, atMost available: UInt64) {
    let stream = publication.stream
    let largest = Int(welcome?.maximumFrame ?? 0) - PublishHeader.size
    var calls: Publication.Calls = []
    output.append { bytes in
      let start = bytes.count
      bytes.append(contentsOf: repeatElement(0, count: FrameHeader.size + PublishHeader.size))
      let limit = min(largest, Publication.batchSize, Int(clamping: session.availableBytes(stream)))
      let count = publication.take(
        records: UInt32(clamping: available), bytes: limit, into: &bytes, calls: &calls)
      guard count > 0 else { return bytes.removeLast(bytes.count - start) }
      let length = bytes.count - start - FrameHeader.size - PublishHeader.size
      let first = session.publish(stream, count: count, bytes: length)
      let header = PublishHeader(firstSequence: first, count: count)
      unsafe bytes.withUnsafeMutableBytes {
        unsafe header.write(at: $0.baseAddress! + start, stream: stream, batchLength: length)
      }
    }
    Publication.run(calls)
  }
}

extension Subscribe.Start {
  init(_ start: SubscriptionPlan.Start) {
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
