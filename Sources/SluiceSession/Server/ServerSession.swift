import SluiceWire

/// One connection's side of the protocol: a frame in, an action out.
///
/// A value without I/O and without a clock. It has the connection's only table of streams: what each one is, what was granted on it, and the object that
/// serves it, which the session keeps and never calls. It doesn't know topics, sockets or memory. An error that it throws ends the connection; an error
/// of a stream is an action. It can't be copied, so that no access to it costs as much as its tables' references.
package struct ServerSession: ~Copyable {
  package enum Phase: Hashable {
    /// Only HELLO is accepted.
    case handshake
    /// The client is being authenticated; no frame is taken.
    case authenticating
    case open
    /// The broker is stopping: open streams continue, but nothing new is published or opened.
    case draining
  }

  private var streams = ServerStreams()
  package private(set) var phase = Phase.handshake
  /// New credentials are being verified.
  private var isRenewing = false
  /// Whether the client takes REDIRECT.
  private var takesRedirects = false
  /// Whether the client is another node, which opens streams for its own clients.
  package var takesOrigins = false
  /// The clients for which streams were opened, and the one for which the next stream is.
  private var origins: [UInt32: Origin] = [:]
  private var nextOrigin: (stream: UInt32, origin: Origin)?
  /// Bytes of ``origins``.
  private var originBytes = 0
  /// The streams that were opened with ``StreamFlag/relay``.
  private var relayed: Set<UInt32> = []

  package init() {}

  /// Takes one frame.
  ///
  /// - Throws: an error of the connection: report it to the peer, and close.
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
    case .publish: return try unsafe streams.publish(header, body, rules)
    case .demand: return try unsafe streams.demand(header.stream, Demand(body: body))
    case .subscribePattern:
      let action = try unsafe open(header, body, rules)
      return streams.openedPattern(header.stream, action, rules)
    case .positions where body.count > PositionsReader.longBody:
      let reader = try unsafe PositionsReader(body: body)
      return try streams.read(header.stream, reader)
    case .positions: return try unsafe streams.goOn(header.stream, Positions(body: body), rules)
    case .settle: return try unsafe streams.settle(header.stream, body)
    case .lend: return try unsafe streams.lend(header.stream, Lend(body: body))
    case .commit: return try unsafe streams.commit(header.stream, Commit(body: body))
    case .complete: return try unsafe streams.complete(header.stream, Complete(body: body))
    case .cancel: return try streams.cancel(header.stream)
    case .ping: return unsafe .pong(token: try Ping(body: body).token)
    case .pong:
      _ = try unsafe Pong(body: body)
      return .none
    case .subscribe, .joinGroup, .publishOpen, .topicCreate, .topicShow, .topicList, .topicDelete,
      .topicConnect, .topicDisconnect, .cursorList, .cursorMove, .cursorDelete, .topicSet, .topicTrim,
      .connectionList, .connectionClose, .brokerShow, .clusterShow, .clusterDrain, .clusterMove, .stateList,
      .stateRestore:
      return try unsafe open(header, body, rules)
    case .origin:
      if takesOrigins { try unsafe name(header.stream, Origin(body: body)) }
      return .none
    case .authenticate: return try unsafe renew(header, body, rules)
    case .error where header.stream == 0:
      // The client says why it is about to close.
      _ = try unsafe Fault(body: body)
      return .none
    default:
      throw WireError(.unexpectedFrame, "a client doesn't send \(header.type) on stream \(header.stream)")
    }
  }

  /// Takes the next positions of a long frame.
  ///
  /// - Parameter count: at most so many.
  /// - Throws: as ``receive(_:_:_:)``.
  package mutating func goOn(
    _ stream: UInt32, _ reader: inout PositionsReader, atMost count: Int,
    _ rules: borrowing ServerSessionRules
  ) throws(WireError) -> ServerAction {
    let positions = try reader.next(atMost: count)
    return try streams.goOn(stream, Positions(positions, more: !reader.isAtEnd || reader.more), rules)
  }

  /// The client is authenticated. WELCOME is next.
  package mutating func admitted() {
    if phase == .authenticating { phase = .open }
  }

  /// The verification of new credentials has ended, with any result: others may be verified.
  package mutating func renewed() {
    isRenewing = false
  }

  /// Bytes of its table of streams.
  package var tableBytes: Int { streams.table.bytes + originBytes }
  package static var bytesPerStream: Int { ServerStreamTable.bytesPerStream }

  /// After this, nothing new is published or opened.
  package mutating func drain() {
    guard phase == .open else { return }
    phase = .draining
    streams.isDraining = true
  }

  /// The broker has ended a stream on its own: completed, failed, or refused.
  package mutating func ended(_ stream: UInt32) {
    streams.table.end(stream, .ended)
  }

  /// Whether something is under way: a request without its answer, or a subscription of which more is to come.
  package var hasRequests: Bool { streams.table.hasRequests }

  /// The request on a stream that waits for its answer, if there is one.
  package func request(on stream: UInt32) -> StreamToken? {
    if case .request = streams.table[stream] { token(of: stream) } else { nil }
  }

  /// Whether an answer to `request` is still wanted. Its stream is free then.
  package mutating func answers(_ request: StreamToken?) -> Bool {
    guard let request, isCurrent(request), case .request = streams.table[request.stream] else { return false }
    streams.table.end(request.stream, .free)
    return true
  }

  /// Makes the publication that has just been opened continue at that sequence, because the broker already has all earlier records.
  package mutating func publication(_ stream: UInt32, continuesAt next: UInt64) {
    streams.table[stream] = .publication(PublicationCredit(startingAt: next))
  }

  /// The credit of a publication that may be granted more; nil while the connection drains.
  package func creditToGrant(_ stream: UInt32) -> PublicationCredit? {
    phase == .open ? publication(stream) : nil
  }

  /// Grants a publication more.
  ///
  /// - Returns: the totals to send, if they have changed.
  package mutating func grant(_ more: PublishAllowance, to stream: UInt32) -> Demand? {
    guard phase == .open, case .publication(var credit) = streams.table[stream], credit.add(more) else {
      return nil
    }
    streams.table[stream] = .publication(credit)
    return Demand(grantedThrough: credit.records.granted, bytesThrough: credit.bytesGranted)
  }

  /// Takes over the totals that another node, which serves the publication's topic, has granted.
  ///
  /// - Returns: whether to send them.
  package mutating func raise(to totals: Demand, on stream: UInt32) -> Bool {
    guard phase == .open, case .publication(var credit) = streams.table[stream], credit.raise(to: totals)
    else {
      return false
    }
    streams.table[stream] = .publication(credit)
    return true
  }

  /// The unused credit of a publication, up to the end of its stream.
  package func held(_ stream: UInt32) -> PublishAllowance {
    switch streams.table[stream] {
    case .publication(let credit), .leaving(let credit): credit.held
    default: PublishAllowance()
    }
  }

  /// Whether the opening frame of a subscription or publication may be answered by REDIRECT. Until the stream has its answer.
  package func mayRedirect(_ stream: UInt32) -> Bool {
    guard takesRedirects, !relayed.contains(stream) else { return false }
    switch streams.table[stream] {
    case .subscription, .publication: return true
    case .free, .ended, .opening, .leaving, .request: return false
    }
  }

  /// The total demand that a subscription has granted.
  package func granted(_ stream: UInt32) -> UInt64? {
    if case .subscription(let through) = streams.table[stream] { through } else { nil }
  }

  /// Demand given to a publication, and what was received on it.
  package func publication(_ stream: UInt32) -> PublicationCredit? {
    if case .publication(let credit) = streams.table[stream] { credit } else { nil }
  }

  /// Streams that are open, in ascending order.
  package var openStreams: [UInt32] { streams.table.open }

  // MARK: The streams' objects

  /// Every number that may be in use.
  package var numbers: Range<UInt32> { streams.table.numbers }

  /// The object that serves a stream; nil if no stream is open.
  package func object(_ stream: UInt32) -> (any ServerStream)? { streams.table.object(stream) }

  /// Gives a stream that the client has opened the object that serves it.
  package mutating func attach(_ object: any ServerStream, to stream: UInt32) {
    streams.table.attach(object, to: stream)
  }

  /// The charge for what the stream's frames make the broker keep; nil while nothing is charged.
  package func charge(of stream: UInt32) -> AnyObject? { streams.table.charge(stream) }

  /// Sets the charge of a stream. The end of the stream's present use releases it.
  package mutating func setCharge(_ charge: AnyObject, of stream: UInt32) {
    streams.table.charge(stream, charge)
  }

  /// Takes the object from a stream. Continuations that wait for this use of the stream are never called after this.
  package mutating func detach(_ stream: UInt32) { streams.table.detach(stream) }

  /// The client for which another node has opened a stream, until the stream's number is used again; nil for a client's own.
  package func origin(of stream: UInt32) -> Origin? { origins.isEmpty ? nil : origins[stream] }

  /// Notes the client of the stream that is opened next, or the new client of an open stream.
  private mutating func name(_ stream: UInt32, _ origin: Origin) {
    nextOrigin = (stream, origin)
    switch streams.table[stream] {
    case .subscription, .publication: setOrigin(of: stream)
    case .free, .ended, .opening, .leaving, .request: break
    }
  }

  private mutating func setOrigin(of stream: UInt32) {
    if let former = origins.removeValue(forKey: stream) { originBytes -= former.bytes }
    guard let next = nextOrigin.take(), next.stream == stream else { return }
    origins[stream] = next.origin
    originBytes += next.origin.bytes
  }

  /// Names the present use of a stream, for what ends elsewhere.
  package func token(of stream: UInt32) -> StreamToken { streams.table.token(of: stream) }

  /// Whether the stream is still what it was when the token was made.
  package func isCurrent(_ token: StreamToken) -> Bool { streams.table.token(of: token.stream) == token }
}

// MARK: - One frame each

extension ServerSession {
  /// Opens a stream for the frame's request.
  private mutating func open(
    _ header: FrameHeader, _ body: UnsafeRawBufferPointer, _ rules: borrowing ServerSessionRules
  ) throws(WireError) -> ServerAction {
    let stream = header.stream
    if let refusal = try streams.refusal(stream, rules) { return refusal }
    do {
      let (state, action) = try unsafe OpeningFrame.read(stream, header.type, body)
      if takesRedirects {
        if header.flags & StreamFlag.relay != 0 { relayed.insert(stream) } else { relayed.remove(stream) }
      }
      streams.table.end(stream, state)
      if takesOrigins { setOrigin(of: stream) }
      return action
    } catch {
      // A newer client asks for what this broker doesn't know; that is no reason to part.
      if error.code.endsConnection { throw error }
      return streams.fault(stream, error.code, error.message)
    }
  }

  private mutating func renew(
    _ header: FrameHeader, _ body: UnsafeRawBufferPointer, _ rules: borrowing ServerSessionRules
  ) throws(WireError) -> ServerAction {
    let action = try unsafe open(header, body, rules)
    guard case .renew = action else { return action }
    guard !isRenewing else {
      return streams.fault(
        header.stream, .tooManyAttempts,
        "other credentials of this connection are being verified; wait for the answer")
    }
    isRenewing = true
    return action
  }
}
