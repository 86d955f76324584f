import ReactiveCore
import SluiceIO
import SluiceSession
import SluiceWire

/// The streams of one connection: passes the session's actions to subscriptions, publications and requests, and encodes the frames that these send. On the
/// loop only.
final class StreamMultiplexer {
  /// The approximate size of a frame of positions, and the part of it that the other fields of SUBSCRIBE_PATTERN may take.
  private static let positionsSize = (frame: 256 << 10, overhead: 40 << 10)

  private let core: ClientCore
  private weak var connection: Connection?
  /// See ``Connection/node``.
  private let node: DirectLink?
  let output: ConnectionOutput
  /// The last large batch's memory, used again once no record of it is kept.
  private var lastBuffer: RecordBuffer?

  /// By stream number less one.
  private var attachments: [Attachment?] = []
  /// By token.
  private var pings: [UInt64: (sent: MonotonicTime, request: Request)] = [:]

  /// The broker's answer to HELLO; nil before the end of the handshake.
  private(set) var welcome: Welcome?
  /// Why the broker is about to close the connection.
  private(set) var departure: ClientError?

  init(_ core: ClientCore, of connection: Connection) {
    self.core = core
    output = ConnectionOutput(core)
    self.connection = connection
    node = connection.node
  }

  // MARK: - Frames in

  /// Handles one frame.
  ///
  /// - Throws: the broker's protocol violation.
  func receive(_ header: FrameHeader, _ body: UnsafeRawBufferPointer, at now: UInt64) throws(WireError) {
    try perform(try unsafe output.session.receive(header, body, at: now))
  }

  private func perform(_ action: ClientAction) throws(WireError) {
    switch action {
    case .none, .cancelled: break

    case .deliver(let stream, let header, let batch):
      guard case .subscription(let subscription) = attachment(stream) else { return }
      try unsafe subscription.receive(header, batch, reusing: &lastBuffer)
      output.noteDue(subscription)
    case .subscribed(let stream, let frame):
      try subscription(stream) { subscription throws(WireError) in
        try subscription.subscribed(frame)
        output.sendSettlements(of: subscription)
      }
    case .deliveries(let stream, let count):
      if case .subscription(let subscription) = attachment(stream) { subscription.delivered(again: count) }
    case .live(let stream, let frame): try event(stream) { $0.live(frame) }
    case .producers(let stream, let count): try event(stream) { $0.producers(count) }
    case .lagged(let stream, let frame):
      try event(stream) { position throws(WireError) in try position.lagged(frame) }
    case .matched(let stream, let frame):
      try subscription(stream) { subscription throws(WireError) in
        guard let error = try subscription.matched(frame) else { return }
        cancel(stream)
        subscription.receive(completion: .failure(error))
      }
    case .unmatched(let stream, let number):
      try event(stream) { position throws(WireError) in try position.unmatched(number) }
    case .selectedTopic(let stream, let number):
      try subscription(stream) { subscription throws(WireError) in try subscription.selectTopic(number) }
    case .topicEnded(let stream, let ending):
      try event(stream) { position throws(WireError) in try position.topicEnded(ending) }

    case .publicationOpened(let stream, let frame):
      guard case .publication(let publication) = attachment(stream) else { return }
      publication.move?.opened(at: core.loop.now)
      try publication.opened(frame)
      output.noteDue(publication)
    case .granted(let stream):
      if case .publication(let publication) = attachment(stream) { output.noteDue(publication) }
    case .acknowledged(let stream, let frame):
      if case .publication(let publication) = attachment(stream), publication.acknowledged(frame) {
        output.noteDue(publication)
      }
    case .connection(let stream, let isConnected):
      if case .publication(let publication) = attachment(stream) { publication.connected(isConnected) }
    case .completed(let stream, let startedOver):
      if case .publication(let publication) = detach(stream), publication.completed(startedOver: startedOver)
      {
        open(.publication(publication))
      }

    case .ended(let stream, let ending): ended(stream, ending)
    case .refused(let stream, let fault): refused(stream, fault)
    case .redirected(let stream, let frame): redirected(stream, frame)

    case .topicInfo(let stream, let frame): try answer(stream, frame)
    case .topics(let stream, let frame): try answer(stream, frame)
    case .cursors(let stream, let frame): try answer(stream, frame)
    case .states(let stream, let frame): try answer(stream, frame)
    case .connections(let stream, let frame): try answer(stream, frame)
    case .brokerInfo(let stream, let frame): try answer(stream, frame)
    case .clusterInfo(let stream, let frame): try answer(stream, frame)
    case .done(let stream): try answer(stream, Done())
    case .authenticated(let stream, let frame): try answer(stream, frame)
    case .answerPing(let token): output.answerPing(token)
    case .pong(let token):
      if let ping = pings.removeValue(forKey: token) {
        ping.request.complete(.success(core.loop.now - ping.sent), core.loop)
      }

    case .opened(let welcome):
      self.welcome = welcome
      connection?.opened(welcome)
    case .goAway(let frame): departure = ClientError(Fault(code: frame.code, message: frame.message))
    case .failed(let fault): connection?.failed(fault)
    }
  }

  /// Lets a stream's subscription handle a frame, after which it may have more to grant.
  private func subscription(
    _ stream: UInt32, _ body: (RemoteSubscription) throws(WireError) -> Void
  ) throws(WireError) {
    guard case .subscription(let subscription) = attachment(stream) else { return }
    try body(subscription)
    output.noteDue(subscription)
  }

  /// Lets a stream's subscription take a frame at its position, and deliver the event that the frame means.
  private func event(
    _ stream: UInt32, _ body: (inout SubscriptionPosition) throws(WireError) -> TopicMark?
  ) throws(WireError) {
    try subscription(stream) { subscription throws(WireError) in try subscription.receive(event: body) }
  }

  private func ended(_ stream: UInt32, _ ending: Complete.Ending) {
    switch detach(stream) {
    case .subscription(let subscription):
      subscription.receive(completion: ending.completion(of: subscription.plan.topic))
      if subscription.commits != nil { output.keepCommitting(subscription, on: stream) }
    case .publication(let publication): publication.topicEnded(ending)
    case nil, .request: break
    }
  }

  private func refused(_ stream: UInt32, _ fault: Fault) {
    let attachment = detach(stream)
    let error = ClientError(fault, topic: attachment?.topic)
    // It was in flight when the broker sent GOAWAY.
    if fault.code == .shuttingDown, isFollowed, let attachment { return leave(attachment, error) }
    if fault.code == .topicMoved, let attachment {
      // The fault may come from another node, which has lost contact with the topic's node.
      core.isInCluster = true
      attachment.doubt(at: core.loop.now)
      return follow(attachment, error)
    }
    if fault.code == .producerFenced || fault.code == .cursorTaken, let attachment,
      attachment.explainsLoss(at: core.loop.now)
    {
      return core.follow(attachment, error)
    }
    switch attachment {
    case .subscription(let subscription):
      // Its offsets belong to an earlier epoch.
      if fault.code == .epochChanged, subscription.startOver() { return open(.subscription(subscription)) }
      if fault.code == .limitReached, core.backOff(subscription) { return }
      subscription.receive(completion: .failure(error))
    case .publication(let publication):
      if fault.code == .epochChanged, publication.startOver() { return open(.publication(publication)) }
      if fault.code.isOfStorage, core.backOff(publication, error) { return }
      publication.end(.failure(error))
    case .request(let request):
      request.complete(.failure(error), core.loop)
    case nil: break
    }
  }

  private func redirected(_ stream: UInt32, _ frame: Redirect) {
    core.isInCluster = true
    guard let attachment = detach(stream) else { return }
    guard let node else { return core.nodes.open(attachment, at: frame) }
    // Two nodes don't agree on where the topic is.
    follow(
      attachment,
      ClientError(
        .topicMoved, "node \(node.name) names node \(frame.node) for the topic", topic: attachment.topic))
  }

  /// Handles that the topic of a stream moves, or isn't served here.
  private func follow(_ attachment: Attachment, _ error: ClientError) {
    core.follow(attachment, error)
    if node != nil { attachment.move?.strayed() }
  }

  /// - Throws: when the frame answers another kind of request.
  private func answer(_ stream: UInt32, _ answer: any Sendable) throws(WireError) {
    guard case .request(let request) = detach(stream) else { return }
    guard request.isAnswered(by: answer) else {
      let error = WireError(
        .unexpectedFrame, "a request on stream \(stream) was answered by \(type(of: answer))")
      request.complete(.failure(.violation(error, by: core.address)), core.loop)
      throw error
    }
    request.complete(.success(answer), core.loop)
  }

  // MARK: - Commands

  func perform(_ command: Command) {
    switch command {
    case .open(let attachment): open(attachment)
    case .demand(let subscription):
      subscription.demandNoted()
      subscription.drain()
      output.noteDue(subscription)
    case .settle(let subscription): output.sendSettlements(of: subscription)
    case .cancel(let subscription):
      // Settlements and commits that preceded the cancellation are sent first.
      output.sendSettlements(of: subscription)
      output.sendCommit(of: subscription)
      if subscription.phase == .open { cancel(subscription.stream) }
      core.stopAwaiting(subscription)
      subscription.forget()
      output.finishCommitting(subscription)
    case .advance(let publication): output.noteDue(publication)
    case .becomeSource(let publication): reopen(publication)
    case .close(let error): core.close(error)
    case .shutdown: break
    }
  }

  /// Opens a stream for a new owner, or for one that had a stream on an earlier connection.
  ///
  /// - Parameter isRelayed: whether the broker serves the stream itself, whichever node serves the topic.
  func open(_ attachment: Attachment, isRelayed: Bool = false) {
    switch attachment {
    case .subscription(let subscription) where subscription.isCancelled: subscription.forget()
    case .request(let request) where request.isOver: break
    // New streams wait for the next connection.
    case _ where isLeaving: leave(attachment, departure ?? .closedHere)
    case .subscription(let subscription): open(subscription, flags: isRelayed ? StreamFlag.relay : 0)
    case .publication(let publication): open(publication, flags: isRelayed ? StreamFlag.relay : 0)
    case .request(let request): open(request)
    }
  }

  /// Sends a request to the broker of this connection, and to no other.
  func ask(_ request: Request) {
    if let departure { return request.complete(.failure(departure), core.loop) }
    open(request)
  }

  /// Whether the broker is about to close the connection, and the client will make another.
  private var isLeaving: Bool { departure != nil && isFollowed }

  /// Whether streams continue on another connection when this one ends.
  private var isFollowed: Bool { node != nil || core.reconnects }

  /// Handles a stream that the broker no longer opens.
  private func leave(_ attachment: Attachment, _ error: ClientError) {
    if node == nil { core.awaitConnection(attachment) } else { core.follow(attachment, error) }
  }

  private func open(_ subscription: RemoteSubscription, flags: UInt8 = 0) {
    let plan = subscription.plan
    if let error = departure ?? plan.invalidity {
      return subscription.receive(completion: .failure(error))
    }
    let (opening, granted) = subscription.opening(
      frameSize: min(maximumFrame, Self.positionsSize.frame) - Self.positionsSize.overhead)
    let isShared = plan.membership != nil
    let stream = output.session.openSubscription(
      granted: granted, isPattern: plan.hasPattern, isShared: isShared,
      commits: !isShared && !plan.hasPattern && plan.cursor != nil)
    guard let stream else {
      if node != nil { return core.relay(.subscription(subscription)) }
      return subscription.receive(completion: .failure(tooManyStreams))
    }
    attach(.subscription(subscription), stream)
    subscription.opened(on: stream, at: node)
    switch opening {
    case .subscribe(let frame): output.send(frame, flags: flags, stream: stream)
    case .join(let frame): output.send(frame, flags: flags, stream: stream)
    case .pattern(let frame, let positions):
      output.send(frame, stream: stream)
      for frame in positions { output.send(frame, stream: stream) }
    }
  }

  private func open(_ publication: Publication, flags: UInt8 = 0) {
    if let error = departure ?? .invalid(topic: publication.topic) {
      return publication.end(.failure(error))
    }
    let frame = publication.opening()
    guard
      let stream = output.session.openPublication(from: frame.firstSequence, isSource: frame.role == .source)
    else {
      if node != nil { return core.relay(.publication(publication)) }
      return publication.end(.failure(tooManyStreams))
    }
    attach(.publication(publication), stream)
    publication.opened(on: stream, at: node)
    output.send(frame, flags: flags, stream: stream)
  }

  /// Reopens a publication that has become a source, unless the broker knows that it is a source. Unacknowledged records are sent again, and the broker
  /// appends each once.
  private func reopen(_ publication: Publication) {
    guard publication.stream != 0, publication.isSource, !isLeaving else { return }
    guard !publication.isOpenedAsSource else { return publication.notifySources() }
    cancel(publication.stream)
    publication.interrupted()
    open(publication)
  }

  private func open(_ request: Request) {
    request.start(core)
    guard let frame = request.frame else {
      let token = output.session.makeToken()
      pings[token] = (core.loop.now, request)
      return output.send(Ping(token: token), stream: 0)
    }
    if let error = departure ?? request.topic.flatMap({ .invalid(topic: $0) }) {
      return request.complete(.failure(error), core.loop)
    }
    guard let stream = output.session.openRequest() else {
      return request.complete(.failure(tooManyStreams), core.loop)
    }
    attach(.request(request), stream)
    output.send(frame, stream: stream)
  }

  private var tooManyStreams: ClientError {
    ClientError(
      .limitReached,
      "this connection has \(welcome?.maximumStreams ?? 0) subscriptions, publications and requests, which is the broker's "
        + "limit; end some, or connect once more")
  }

  var publications: [Publication] {
    attachments.compactMap { if case .publication(let publication)? = $0 { publication } else { nil } }
  }

  /// Whether nothing would be lost by closing the connection.
  var isIdle: Bool { attachments.allSatisfy { $0 == nil } && !output.isCommitting && pings.isEmpty }

  // MARK: - The table of streams

  private func attachment(_ stream: UInt32) -> Attachment? {
    let index = Int(stream) - 1
    return attachments.indices.contains(index) ? attachments[index] : nil
  }

  private func attach(_ attachment: Attachment, _ stream: UInt32) {
    while attachments.count < Int(stream) { attachments.append(nil) }
    attachments[Int(stream) - 1] = attachment
  }

  /// Removes the stream's owner from the table, and returns it.
  private func detach(_ stream: UInt32) -> Attachment? {
    guard let attachment = attachment(stream) else { return nil }
    attachments[Int(stream) - 1] = nil
    return attachment
  }

  private func cancel(_ stream: UInt32) {
    _ = detach(stream)
    if output.session.cancel(stream) { output.send(Cancel(), stream: stream) }
  }

  // MARK: - Output

  /// Encodes grants, commits, and the records that publications may send.
  func fillOutput() {
    output.sendPong()
    output.sendGrants()
    servePublications()
  }

  private func servePublications() {
    if isLeaving { return output.forgetDuePublications() }
    output.servePublications(maximumFrame: maximumFrame) { publication in
      cancel(publication.stream)
      publication.end(.failure(.closedHere))
    }
  }

  /// The longest frame that the broker accepts, in bytes.
  private var maximumFrame: Int { Int(welcome?.maximumFrame ?? 0) }

  // MARK: - End

  /// Encodes the last output of a client that is closed: the last commits, and the granted records.
  func fillLastOutput() {
    for case .subscription(let subscription)? in attachments { output.sendCommit(of: subscription) }
    output.sendLastCommits()
    servePublications()
  }

  /// Ends all streams. Returns their owners, in the order of the streams' numbers.
  func removeAll() -> [Attachment] {
    output.removeAll()
    lastBuffer = nil
    let pings = exchange(&pings, with: [:])
    if core.isInCluster { for attachment in attachments { attachment?.doubt(at: core.loop.now) } }
    return exchange(&attachments, with: []).compactMap { $0 }
      + pings.keys.sorted().compactMap { pings[$0].map { .request($0.request) } }
  }
}
