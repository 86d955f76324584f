import SluiceWire

/// What every session of a broker has in common.
package struct ServerSessionRules: ~Copyable, Sendable {
  package var handshake: ServerHandshake
  package let records: RecordLimit
  package var maximumStreams: UInt32
  /// Positions of patterns' topics that a connection may have on their way, and what they may take of memory.
  package var maximumPositions: Int
  package var maximumPositionBytes: Int
  /// Whether clients have to authenticate.
  package var asksIdentity: Bool

  package init(
    handshake: ServerHandshake, maximumRecord: Int, maximumStreams: UInt32, maximumPositions: Int,
    maximumPositionBytes: Int = .max, asksIdentity: Bool = false
  ) {
    self.handshake = handshake
    records = RecordLimit(maximumRecord)
    self.maximumStreams = maximumStreams
    self.maximumPositions = maximumPositions
    self.maximumPositionBytes = maximumPositionBytes
    self.asksIdentity = asksIdentity
  }
}

/// One connection's side of the protocol: a frame in, an action out.
///
/// A value without I/O and without a clock. It has the connection's only table of streams: what each one is, what was granted on it, and the object that
/// serves it, which the session keeps and never calls. It doesn't know topics, sockets or memory. An error that it throws ends the connection; an error
/// of a stream is an action. It can't be copied, so that no access to it costs as much as its tables' references.
package struct ServerSession: ~Copyable {
  package enum Phase: Hashable {
    /// Nothing but HELLO is taken.
    case handshake
    /// The client is being authenticated; no frame is taken.
    case authenticating
    case open
    /// The broker is stopping: what is open goes on, but nothing new is published or opened.
    case draining
  }

  package private(set) var phase = Phase.handshake
  private var streams = ServerStreamTable()
  /// Those that have come for subscriptions that are opening.
  private var positions = PendingPositions()
  /// New credentials are being verified.
  private var isRenewing = false
  /// Whether the client takes REDIRECT.
  private var takesRedirects = false
  /// The streams that were opened with ``StreamFlag/relay``.
  private var relayed: Set<UInt32> = []

  package init() {}

  /// Takes one frame.
  ///
  /// - Throws: an error of the connection, which must be told to the peer and closed.
  package mutating func receive(
    _ header: FrameHeader, _ body: UnsafeRawBufferPointer, _ rules: borrowing ServerSessionRules
  ) throws(WireError) -> ServerAction {
    if phase == .handshake {
      var agreement = try unsafe rules.handshake.receive(header, body)
      agreement.welcome.maximumRecord = UInt32(clamping: rules.records.present)
      takesRedirects = agreement.welcome.features & Feature.redirects != 0
      phase = rules.asksIdentity ? .authenticating : .open
      return rules.asksIdentity ? .authenticate(agreement) : .welcome(agreement)
    }
    guard phase != .authenticating || header.type == .error && header.stream == 0 else {
      throw WireError(.unexpectedFrame, "\(header.type) came before WELCOME was sent; a client waits for it")
    }
    switch header.type {
    case .publish: return try unsafe publish(header.stream, body, rules)
    case .demand: return try unsafe demand(header.stream, Demand(body: body))
    case .subscribePattern: return try unsafe subscribePattern(header, body, rules)
    case .positions: return try unsafe positions(header.stream, Positions(body: body), rules)
    case .settle: return try unsafe settle(header.stream, body)
    case .lend: return try unsafe lend(header.stream, Lend(body: body))
    case .commit: return try unsafe commit(header.stream, Commit(body: body))
    case .complete: return try unsafe complete(header.stream, Complete(body: body))
    case .cancel: return try cancel(header.stream)
    case .ping: return unsafe .pong(token: try Ping(body: body).token)
    case .pong:
      _ = try unsafe Pong(body: body)
      return .none
    case .subscribe, .joinGroup, .publishOpen, .topicCreate, .topicShow, .topicList, .topicDelete,
      .topicConnect, .topicDisconnect, .cursorList, .cursorMove, .cursorDelete, .topicSet, .topicTrim,
      .connectionList, .connectionClose, .brokerShow, .clusterShow, .clusterDrain, .clusterMove, .stateList,
      .stateRestore:
      return try unsafe open(header, body, rules)
    case .authenticate: return try unsafe renew(header, body, rules)
    case .error where header.stream == 0:
      // The client says why it is about to close.
      _ = try unsafe Fault(body: body)
      return .none
    default:
      throw WireError(.unexpectedFrame, "a client doesn't send \(header.type) on stream \(header.stream)")
    }
  }

  /// The client is authenticated. WELCOME is next.
  package mutating func admitted() {
    if phase == .authenticating { phase = .open }
  }

  /// Whatever came of new credentials: others may be verified.
  package mutating func renewed() {
    isRenewing = false
  }

  /// Bytes of its table of streams.
  package var tableBytes: Int { streams.bytes }
  package static var bytesPerStream: Int { ServerStreamTable.bytesPerStream }

  /// About the bytes of memory of positions that have come for subscriptions that are opening.
  package var positionBytes: Int { positions.bytes }

  /// From now on nothing new is published or opened.
  package mutating func drain() {
    if phase == .open { phase = .draining }
  }

  /// The broker has ended a stream on its own: completed, failed, or refused.
  package mutating func ended(_ stream: UInt32) {
    streams.end(stream, .ended)
  }

  /// Whether something is under way: a request without its answer, or a subscription of which more is to come.
  package var hasRequests: Bool { streams.hasRequests }

  /// The request on a stream that waits for its answer, if there is one.
  package func request(on stream: UInt32) -> StreamToken? {
    if case .request = streams[stream] { token(of: stream) } else { nil }
  }

  /// Whether an answer to `request` is still wanted. Its stream is free then.
  package mutating func answers(_ request: StreamToken?) -> Bool {
    guard let request, isCurrent(request), case .request = streams[request.stream] else { return false }
    streams.end(request.stream, .free)
    return true
  }

  /// The publication that has just been opened goes on at that sequence, of which the broker has all before.
  package mutating func publication(_ stream: UInt32, continuesAt next: UInt64) {
    streams[stream] = .publication(PublicationCredit(startingAt: next))
  }

  /// The credit of a publication that may be granted more; nil while the connection drains.
  package func creditToGrant(_ stream: UInt32) -> PublicationCredit? {
    phase == .open ? publication(stream) : nil
  }

  /// Grants a publication more.
  ///
  /// - Returns: the totals to be told, if they are others than before.
  package mutating func grant(_ more: PublishAllowance, to stream: UInt32) -> Demand? {
    guard phase == .open, case .publication(var credit) = streams[stream], credit.add(more) else {
      return nil
    }
    streams[stream] = .publication(credit)
    return Demand(grantedThrough: credit.records.granted, bytesThrough: credit.bytesGranted)
  }

  /// Takes over the totals that another node, which serves the publication's topic, has granted.
  ///
  /// - Returns: whether they are to be told.
  package mutating func raise(to totals: Demand, on stream: UInt32) -> Bool {
    guard phase == .open, case .publication(var credit) = streams[stream], credit.raise(to: totals) else {
      return false
    }
    streams[stream] = .publication(credit)
    return true
  }

  /// What is left of what a publication was granted, up to the end of its stream.
  package func held(_ stream: UInt32) -> PublishAllowance {
    switch streams[stream] {
    case .publication(let credit), .leaving(let credit): credit.held
    default: PublishAllowance()
    }
  }

  /// Whether the opening frame of a subscription or publication may be answered by REDIRECT. Until the stream has its answer.
  package func mayRedirect(_ stream: UInt32) -> Bool {
    guard takesRedirects, !relayed.contains(stream) else { return false }
    switch streams[stream] {
    case .subscription, .publication: return true
    case .free, .ended, .opening, .leaving, .request: return false
    }
  }

  /// What a subscription was granted, in all.
  package func granted(_ stream: UInt32) -> UInt64? {
    if case .subscription(let through) = streams[stream] { through } else { nil }
  }

  /// Demand given to a publication, and what was received on it.
  package func publication(_ stream: UInt32) -> PublicationCredit? {
    if case .publication(let credit) = streams[stream] { credit } else { nil }
  }

  /// Streams that are open, in ascending order.
  package var openStreams: [UInt32] { streams.open }

  // MARK: The streams' objects

  /// Every number that may be in use.
  package var numbers: Range<UInt32> { streams.numbers }

  /// What serves a stream; nil where nothing is open.
  package func object(_ stream: UInt32) -> (any ServerStream)? { streams.object(stream) }

  /// Gives a stream that the client has opened the object that serves it.
  package mutating func attach(_ object: any ServerStream, to stream: UInt32) {
    streams.attach(object, to: stream)
  }

  /// Takes the object from a stream. What waits for the stream's present use waits in vain from now on.
  package mutating func detach(_ stream: UInt32) { streams.detach(stream) }

  /// Names the present use of a stream, for what ends elsewhere.
  package func token(of stream: UInt32) -> StreamToken { streams.token(of: stream) }

  /// Whether the stream is still what it was when the token was made.
  package func isCurrent(_ token: StreamToken) -> Bool { streams.token(of: token.stream) == token }
}

// MARK: - One frame each

extension ServerSession {
  /// Decodes a frame and checks the names in it: the one place where names that clients send are admitted.
  ///
  /// - Throws: what is wrong with the frame; ``ErrorCode/invalidTopic`` for a name, which ends its stream only.
  private static func admit<F: Frame>(_ type: F.Type, _ body: UnsafeRawBufferPointer) throws(WireError) -> F {
    let frame = try unsafe F(body: body)
    try frame.validateNames()
    return frame
  }

  /// What a frame that opens a stream makes of it, and asks of the broker.
  private static func opening(
    _ stream: UInt32, _ type: FrameType, _ body: UnsafeRawBufferPointer
  ) throws(WireError) -> (ServerStreamTable.State, ServerAction) {
    switch type {
    case .subscribe:
      let frame = try unsafe admit(Subscribe.self, body)
      return (.subscription(grantedThrough: frame.grantedThrough), .subscribe(stream: stream, frame))
    case .joinGroup:
      let frame = try unsafe admit(JoinGroup.self, body)
      return (.subscription(grantedThrough: frame.grantedThrough), .join(stream: stream, frame))
    case .publishOpen:
      // What it is granted is the topic's affair.
      let frame = try unsafe admit(PublishOpen.self, body)
      let credit = PublicationCredit(startingAt: frame.firstSequence)
      return (.publication(credit), .openPublication(stream: stream, frame))
    case .subscribePattern:
      let frame = try unsafe admit(SubscribePattern.self, body)
      if frame.more { return (.opening(frame), .none) }
      return (.subscription(grantedThrough: frame.grantedThrough), .subscribePattern(stream: stream, frame))
    default: return (.request, try unsafe request(stream, type, body))
    }
  }

  private static func request(
    _ stream: UInt32, _ type: FrameType, _ body: UnsafeRawBufferPointer
  ) throws(WireError) -> ServerAction {
    switch type {
    case .topicCreate: return unsafe .createTopic(stream: stream, try admit(TopicCreate.self, body))
    case .topicShow: return unsafe .showTopic(stream: stream, topic: try admit(TopicShow.self, body).topic)
    case .topicList:
      let page = try unsafe admit(TopicList.self, body)
      return .listTopics(stream: stream, after: page.after, limit: page.limit)
    case .topicDelete:
      return unsafe .deleteTopic(stream: stream, topic: try admit(TopicDelete.self, body).topic)
    case .topicConnect:
      let topic = try unsafe admit(TopicConnect.self, body).topic
      return .connectTopic(stream: stream, topic: topic, isConnected: true)
    case .topicDisconnect:
      let topic = try unsafe admit(TopicDisconnect.self, body).topic
      return .connectTopic(stream: stream, topic: topic, isConnected: false)
    case .cursorList:
      let page = try unsafe admit(CursorList.self, body)
      return .listCursors(stream: stream, topic: page.topic, after: page.after, limit: page.limit)
    case .cursorMove: return unsafe .moveCursor(stream: stream, try admit(CursorMove.self, body))
    case .cursorDelete:
      let frame = try unsafe admit(CursorDelete.self, body)
      return .deleteCursor(stream: stream, topic: frame.topic, name: frame.name)
    case .topicSet: return unsafe .setTopic(stream: stream, try admit(TopicSet.self, body))
    case .topicTrim: return unsafe .trimTopic(stream: stream, try admit(TopicTrim.self, body))
    case .stateList: return unsafe .listStates(stream: stream, try admit(StateList.self, body))
    case .stateRestore: return unsafe .restoreStates(stream: stream, try admit(StateRestore.self, body))
    case .connectionList:
      let page = try unsafe admit(ConnectionList.self, body)
      return .listConnections(stream: stream, after: page.after, limit: page.limit)
    case .connectionClose:
      let frame = try unsafe admit(ConnectionClose.self, body)
      return .closeConnection(stream: stream, connection: frame.connection)
    case .brokerShow:
      _ = try unsafe admit(BrokerShow.self, body)
      return .showBroker(stream: stream)
    case .clusterShow: return unsafe .showCluster(stream: stream, try admit(ClusterShow.self, body))
    case .clusterDrain: return unsafe .drainNode(stream: stream, try admit(ClusterDrain.self, body))
    case .clusterMove: return unsafe .moveShard(stream: stream, try admit(ClusterMove.self, body))
    case .authenticate: return unsafe .renew(stream: stream, try admit(Authenticate.self, body).credentials)
    default: preconditionFailure("\(type) opens no stream")
    }
  }

  private mutating func publish(
    _ stream: UInt32, _ body: UnsafeRawBufferPointer, _ rules: borrowing ServerSessionRules
  ) throws(WireError) -> ServerAction {
    let (header, batch) = unsafe try PublishHeader.decode(body)
    guard case .publication(var credit) = streams[stream] else { return try misplaced(stream, .publish) }
    if phase == .draining { return .none }
    guard header.firstSequence == credit.records.spent else {
      return fault(
        stream,
        .malformedBatch,
        "PUBLISH counts from \(header.firstSequence) where \(credit.records.spent) records had been published"
      )
    }
    let held = credit.held
    if UInt64(header.count) <= held.records, held.bytes > 0 {
      do {
        try unsafe RecordLayout.validate(batch, count: header.count, maximumRecord: rules.records.present)
      } catch {
        return fault(stream, error.code, error.message)
      }
    }
    // Where its last record begins matters to a batch only that is longer than what was granted.
    let start =
      UInt64(batch.count) <= held.bytes ? 0 : unsafe RecordLayout.startOfLastRecord(in: batch)
    guard credit.spend(records: UInt64(header.count), bytes: batch.count, beforeLast: start) else {
      return fault(
        stream, .demandExceeded,
        """
        \(header.count) records in \(batch.count) bytes were published where \(held.records) more, and \
        \(held.bytes) bytes, had been granted; wait for DEMAND
        """)
    }
    streams[stream] = .publication(credit)
    return unsafe .append(stream: stream, count: header.count, batch: batch)
  }

  private mutating func demand(_ stream: UInt32, _ demand: Demand) throws(WireError) -> ServerAction {
    let granted: UInt64
    switch streams[stream] {
    case .subscription(let through): granted = through
    case .opening(let frame): granted = frame.grantedThrough
    default: return try misplaced(stream, .demand)
    }
    guard demand.grantedThrough > 0 else {
      return fault(
        stream, .invalidDemand, "DEMAND grants nothing; it must name the total of records, at least 1")
    }
    guard demand.grantedThrough > granted else { return .none }
    if case .opening(var frame) = streams[stream] {
      frame.grantedThrough = demand.grantedThrough
      streams[stream] = .opening(frame)
      return .none
    }
    streams[stream] = .subscription(grantedThrough: demand.grantedThrough)
    return .demand(stream: stream, grantedThrough: demand.grantedThrough)
  }

  /// A subscription to a pattern begins with the last of the places where it goes on.
  private mutating func subscribePattern(
    _ header: FrameHeader, _ body: UnsafeRawBufferPointer, _ rules: borrowing ServerSessionRules
  ) throws(WireError) -> ServerAction {
    let action = try unsafe open(header, body, rules)
    guard case .opening(let frame) = streams[header.stream] else { return action }
    positions.add(frame.positions)
    return positions.exceed(rules) ? tooManyPositions(header.stream, frame, rules) : action
  }

  private mutating func positions(
    _ stream: UInt32, _ more: Positions, _ rules: borrowing ServerSessionRules
  ) throws(WireError) -> ServerAction {
    guard case .opening(var frame) = streams[stream] else { return try misplaced(stream, .positions) }
    do {
      try more.validateNames()
    } catch {
      positions.remove(frame.positions)
      return fault(stream, error.code, error.message)
    }
    // So that what has come isn't copied with every frame.
    streams[stream] = .ended
    frame.positions += more.positions
    positions.add(more.positions)
    if positions.exceed(rules) { return tooManyPositions(stream, frame, rules) }
    guard more.more else {
      positions.remove(frame.positions)
      frame.more = false
      streams[stream] = .subscription(grantedThrough: frame.grantedThrough)
      return .subscribePattern(stream: stream, frame)
    }
    streams[stream] = .opening(frame)
    return .none
  }

  private mutating func tooManyPositions(
    _ stream: UInt32, _ frame: SubscribePattern, _ rules: borrowing ServerSessionRules
  ) -> ServerAction {
    positions.remove(frame.positions)
    return fault(
      stream, .limitReached,
      """
      positions in more than \(rules.maximumPositions) topics, or of more than \(rules.maximumPositionBytes) bytes, are on \
      their way, which is the broker's limit; use patterns that match fewer, or several connections
      """)
  }

  private func commit(_ stream: UInt32, _ commit: Commit) throws(WireError) -> ServerAction {
    switch streams[stream] {
    // The last records of a topic that has ended are committed behind COMPLETE.
    case .subscription, .ended: break
    default: return try misplaced(stream, .commit)
    }
    return .commit(stream: stream, nextOffset: commit.nextOffset)
  }

  private func lend(_ stream: UInt32, _ loan: Lend) throws(WireError) -> ServerAction {
    guard case .subscription = streams[stream] else { return try misplaced(stream, .lend) }
    return .lend(stream: stream, loan)
  }

  private mutating func settle(
    _ stream: UInt32, _ body: UnsafeRawBufferPointer
  ) throws(WireError) -> ServerAction {
    guard case .subscription = streams[stream] else { return try misplaced(stream, .settle) }
    do {
      return unsafe .settle(stream: stream, try Settle(body: body))
    } catch {
      // A verdict that this broker doesn't know is no reason to part.
      if error.code.endsConnection { throw error }
      return fault(stream, error.code, error.message)
    }
  }

  /// Opens a stream for what the frame asks for.
  private mutating func open(
    _ header: FrameHeader, _ body: UnsafeRawBufferPointer, _ rules: borrowing ServerSessionRules
  ) throws(WireError) -> ServerAction {
    let stream = header.stream
    if let refusal = try refusal(stream, rules) { return refusal }
    do {
      let (state, action) = try unsafe Self.opening(stream, header.type, body)
      if takesRedirects {
        if header.flags & StreamFlag.relay != 0 { relayed.insert(stream) } else { relayed.remove(stream) }
      }
      streams.end(stream, state)
      return action
    } catch {
      // A newer client asks for what this broker doesn't know; that is no reason to part.
      if error.code.endsConnection { throw error }
      return fault(stream, error.code, error.message)
    }
  }

  private mutating func renew(
    _ header: FrameHeader, _ body: UnsafeRawBufferPointer, _ rules: borrowing ServerSessionRules
  ) throws(WireError) -> ServerAction {
    let action = try unsafe open(header, body, rules)
    guard case .renew = action else { return action }
    guard !isRenewing else {
      return fault(
        header.stream, .tooManyAttempts,
        "other credentials of this connection are being verified; wait for the answer")
    }
    isRenewing = true
    return action
  }

  private mutating func complete(_ stream: UInt32, _ complete: Complete) throws(WireError) -> ServerAction {
    guard case .publication(let credit) = streams[stream] else { return try misplaced(stream, .complete) }
    if phase == .draining { return .none }
    if case .failure(_, let message) = complete.ending, message.utf8.count > Limits.message {
      return fault(
        stream, .limitReached,
        "the failure's message has \(message.utf8.count) bytes; the limit is \(Limits.message)")
    }
    leave(stream, credit)
    return .complete(stream: stream, complete.ending)
  }

  private mutating func cancel(_ stream: UInt32) throws(WireError) -> ServerAction {
    guard stream != 0, streams.numbers.contains(stream) else {
      throw WireError(.invalidStream, "CANCEL on stream \(stream), which was never opened")
    }
    switch streams[stream] {
    case .publication(let credit):
      leave(stream, credit)
      return .cancel(stream: stream)
    case .leaving: return .confirmCancel(stream: stream)
    case .subscription:
      streams[stream] = .free
      return .cancel(stream: stream)
    case .opening(let frame): positions.remove(frame.positions)
    case .free, .ended, .request: break
    }
    // What serves the stream is released before CANCELLED is sent.
    if object(stream) == nil { streams.end(stream, .free) } else { streams[stream] = .free }
    return .confirmCancel(stream: stream)
  }

  private mutating func leave(_ stream: UInt32, _ credit: PublicationCredit) {
    streams[stream] = object(stream) == nil ? .free : .leaving(credit)
  }
}

// MARK: - The stream table

extension ServerSession {
  /// Makes room for a stream that the client wants to open; says why it can't be.
  private mutating func refusal(
    _ stream: UInt32, _ rules: borrowing ServerSessionRules
  ) throws(WireError) -> ServerAction? {
    guard stream != 0, stream <= rules.maximumStreams else {
      throw WireError(
        .invalidStream, "stream \(stream) isn't in 1...\(rules.maximumStreams), which WELCOME announced")
    }
    switch streams[stream] {
    case .free, .ended: break
    case .leaving:
      throw WireError(
        .invalidStream,
        "stream \(stream) was begun anew before CANCELLED had come; wait for it, or take another number")
    case .subscription, .opening, .publication, .request:
      throw WireError(.invalidStream, "stream \(stream) is in use already")
    }
    streams.makeRoom(for: stream)
    guard phase == .open else {
      return fault(stream, .shuttingDown, "the broker is stopping; connect to another or try again later")
    }
    return nil
  }

  /// A frame for a stream that isn't what the frame needs: dropped when the stream ended while it was under way, otherwise the two sides
  /// don't agree on what is open.
  private func misplaced(_ stream: UInt32, _ type: FrameType) throws(WireError) -> ServerAction {
    if case .ended = streams[stream] { return .none }
    throw WireError(.invalidStream, "\(type) on stream \(stream), which isn't open for it")
  }

  private mutating func fault(_ stream: UInt32, _ code: ErrorCode, _ message: String) -> ServerAction {
    if case .publication(let credit) = streams[stream], object(stream) != nil {
      streams[stream] = .leaving(credit)
    } else {
      streams[stream] = .ended
    }
    return .fault(stream: stream, Fault(code: code, message: message))
  }
}
