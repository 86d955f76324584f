import SluiceWire

/// What every session of a broker has in common.
package struct ServerSessionRules: Sendable {
  package var handshake: ServerHandshake
  package var maximumRecord: Int
  package var maximumStreams: UInt32
  /// Positions of patterns' topics that a connection may have on their way, and what they may take of memory.
  package var maximumPositions: Int
  package var maximumPositionBytes: Int
  /// Whether clients have to say who they are.
  package var asksIdentity: Bool

  package init(
    handshake: ServerHandshake, maximumRecord: Int, maximumStreams: UInt32, maximumPositions: Int,
    maximumPositionBytes: Int = .max, asksIdentity: Bool = false
  ) {
    self.handshake = handshake
    self.maximumRecord = maximumRecord
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
/// of a stream is an action.
package struct ServerSession {
  package enum Phase: Hashable {
    /// Nothing but HELLO is taken.
    case handshake
    /// It is being found out who the client is; nothing is taken.
    case authenticating
    case open
    /// The broker is stopping: what is open goes on, but nothing new is published or opened.
    case draining
  }

  private enum State {
    /// Never used, or given back by the client.
    case free
    /// Ended by the broker; the client may not have heard yet, so what it still sends is dropped.
    case ended
    case subscription(grantedThrough: UInt64)
    /// A subscription to a pattern, of which more positions are to come.
    indirect case opening(SubscribePattern)
    case publication(PublicationCredit)
    /// A publication that the client has left or completed. Its number isn't free before CANCELLED is sent.
    case leaving(PublicationCredit)
    /// A request that wasn't answered yet.
    case request
  }

  private struct Slot {
    var state = State.free
    /// Grows with each use of the number, and when a use ends.
    var generation: UInt32 = 0
    var object: (any ServerStream)?
  }

  package private(set) var phase = Phase.handshake
  private var slots: [Slot] = []
  /// Positions that have come for subscriptions that are opening.
  private var positions = 0
  /// About what they take of memory.
  package private(set) var positionBytes = 0
  /// New credentials are being verified.
  private var isRenewing = false

  package init() {}

  /// Takes one frame.
  ///
  /// - Throws: an error of the connection, which must be told to the peer and closed.
  package mutating func receive(
    _ header: FrameHeader, _ body: UnsafeRawBufferPointer, _ rules: ServerSessionRules
  ) throws(WireError) -> ServerAction {
    if phase == .handshake {
      let agreement = try unsafe rules.handshake.receive(header, body)
      phase = rules.asksIdentity ? .authenticating : .open
      return rules.asksIdentity ? .authenticate(agreement) : .welcome(agreement)
    }
    guard phase != .authenticating || header.type == .error && header.stream == 0 else {
      throw WireError(.unexpectedFrame, "\(header.type) came before WELCOME was sent; a client waits for it")
    }
    switch header.type {
    case .publish: return try unsafe publish(header.stream, body, rules)
    case .demand: return try unsafe demand(header.stream, Demand(body: body))
    case .subscribe:
      return try open(header.stream, rules) { stream throws(WireError) in
        let frame = try unsafe Self.admit(Subscribe.self, body)
        return (.subscription(grantedThrough: frame.grantedThrough), .subscribe(stream: stream, frame))
      }
    case .subscribePattern:
      return try unsafe subscribePattern(header.stream, body, rules)
    case .positions: return try unsafe positions(header.stream, Positions(body: body), rules)
    case .joinGroup:
      return try open(header.stream, rules) { stream throws(WireError) in
        let frame = try unsafe Self.admit(JoinGroup.self, body)
        return (.subscription(grantedThrough: frame.grantedThrough), .join(stream: stream, frame))
      }
    case .settle: return try unsafe settle(header.stream, body)
    case .publishOpen:
      return try open(header.stream, rules) { stream throws(WireError) in
        // What it is granted is the topic's affair.
        let frame = try unsafe Self.admit(PublishOpen.self, body)
        let credit = PublicationCredit(startingAt: frame.firstSequence)
        return (.publication(credit), .openPublication(stream: stream, frame))
      }
    case .commit: return try unsafe commit(header.stream, Commit(body: body))
    case .complete: return try unsafe complete(header.stream, Complete(body: body))
    case .cancel: return try cancel(header.stream)
    case .ping: return unsafe .pong(token: try Ping(body: body).token)
    case .pong:
      _ = try unsafe Pong(body: body)
      return .none
    case .topicCreate:
      return try request(header.stream, rules) { stream throws(WireError) in
        unsafe .createTopic(stream: stream, try Self.admit(TopicCreate.self, body))
      }
    case .topicShow:
      return try request(header.stream, rules) { stream throws(WireError) in
        unsafe .showTopic(stream: stream, topic: try Self.admit(TopicShow.self, body).topic)
      }
    case .topicList:
      return try request(header.stream, rules) { stream throws(WireError) in
        let page = try unsafe Self.admit(TopicList.self, body)
        return .listTopics(stream: stream, after: page.after, limit: page.limit)
      }
    case .topicDelete:
      return try request(header.stream, rules) { stream throws(WireError) in
        unsafe .deleteTopic(stream: stream, topic: try Self.admit(TopicDelete.self, body).topic)
      }
    case .topicConnect:
      return try request(header.stream, rules) { stream throws(WireError) in
        unsafe .connectTopic(
          stream: stream, topic: try Self.admit(TopicConnect.self, body).topic, isConnected: true)
      }
    case .topicDisconnect:
      return try request(header.stream, rules) { stream throws(WireError) in
        unsafe .connectTopic(
          stream: stream, topic: try Self.admit(TopicDisconnect.self, body).topic, isConnected: false)
      }
    case .cursorList:
      return try request(header.stream, rules) { stream throws(WireError) in
        let page = try unsafe Self.admit(CursorList.self, body)
        return .listCursors(stream: stream, topic: page.topic, after: page.after, limit: page.limit)
      }
    case .cursorMove:
      return try request(header.stream, rules) { stream throws(WireError) in
        unsafe .moveCursor(stream: stream, try Self.admit(CursorMove.self, body))
      }
    case .cursorDelete:
      return try request(header.stream, rules) { stream throws(WireError) in
        let frame = try unsafe Self.admit(CursorDelete.self, body)
        return .deleteCursor(stream: stream, topic: frame.topic, name: frame.name)
      }
    case .authenticate: return try unsafe renew(header.stream, body, rules)
    case .error where header.stream == 0:
      // The client says why it is about to close.
      _ = try unsafe Fault(body: body)
      return .none
    default:
      throw WireError(.unexpectedFrame, "a client doesn't send \(header.type) on stream \(header.stream)")
    }
  }

  /// The client is who it says. WELCOME is next.
  package mutating func admitted() {
    if phase == .authenticating { phase = .open }
  }

  /// Whatever came of new credentials: others may be verified.
  package mutating func renewed() {
    isRenewing = false
  }

  /// Bytes of its table of streams.
  package var tableBytes: Int { slots.count * Self.bytesPerStream }
  package static var bytesPerStream: Int { MemoryLayout<Slot>.stride }

  /// From now on nothing new is published or opened.
  package mutating func drain() {
    if phase == .open { phase = .draining }
  }

  /// The broker has ended a stream on its own: completed, failed, or refused.
  package mutating func ended(_ stream: UInt32) {
    self[stream] = .ended
    endUse(of: stream)
  }

  /// Whether something is under way: a request without its answer, or a subscription of which more is to come.
  package var hasRequests: Bool {
    slots.contains {
      switch $0.state {
      case .opening, .request: true
      case .free, .ended, .subscription, .publication, .leaving: false
      }
    }
  }

  /// The request on a stream that waits for its answer, if there is one.
  package func request(on stream: UInt32) -> StreamToken? {
    if case .request = self[stream] { token(of: stream) } else { nil }
  }

  /// Whether an answer to `request` is still wanted. Its stream is free then.
  package mutating func answers(_ request: StreamToken?) -> Bool {
    guard let request, isCurrent(request), case .request = self[request.stream] else { return false }
    self[request.stream] = .free
    slots[Int(request.stream) - 1].object = nil
    endUse(of: request.stream)
    return true
  }

  /// The publication that has just been opened goes on at that sequence, of which the broker has all before.
  package mutating func publication(_ stream: UInt32, continuesAt next: UInt64) {
    self[stream] = .publication(PublicationCredit(startingAt: next))
  }

  /// The credit of a publication that may be granted more; nil while the connection drains.
  package func creditToGrant(_ stream: UInt32) -> PublicationCredit? {
    phase == .open ? publication(stream) : nil
  }

  /// Grants a publication more.
  ///
  /// - Returns: the totals to be told, if they are others than before.
  package mutating func grant(_ more: PublishAllowance, to stream: UInt32) -> Demand? {
    guard phase == .open, case .publication(var credit) = self[stream], credit.add(more) else { return nil }
    self[stream] = .publication(credit)
    return Demand(grantedThrough: credit.records.granted, bytesThrough: credit.bytesGranted)
  }

  /// What is left of what a publication was granted, up to the end of its stream.
  package func held(_ stream: UInt32) -> PublishAllowance {
    switch self[stream] {
    case .publication(let credit), .leaving(let credit): credit.held
    default: PublishAllowance()
    }
  }

  /// What a subscription was granted, in all.
  package func granted(_ stream: UInt32) -> UInt64? {
    if case .subscription(let through) = self[stream] { through } else { nil }
  }

  /// Demand given to a publication, and what was received on it.
  package func publication(_ stream: UInt32) -> PublicationCredit? {
    if case .publication(let credit) = self[stream] { credit } else { nil }
  }

  /// Streams that are open, in ascending order.
  package var openStreams: [UInt32] {
    slots.indices.compactMap {
      switch slots[$0].state {
      case .free, .ended, .opening, .leaving, .request: nil
      case .subscription, .publication: UInt32($0 + 1)
      }
    }
  }
}

// MARK: - The streams' objects

extension ServerSession {
  /// Every number that may be in use.
  package var numbers: Range<UInt32> { 1..<UInt32(slots.count + 1) }

  /// What serves a stream; nil for a request, and where nothing is open.
  package func object(_ stream: UInt32) -> (any ServerStream)? {
    let index = Int(stream) - 1
    return slots.indices.contains(index) ? slots[index].object : nil
  }

  /// Gives a stream that the client has opened the object that serves it.
  package mutating func attach(_ object: any ServerStream, to stream: UInt32) {
    slots[Int(stream) - 1].object = object
  }

  /// Takes the object from a stream. What waits for the stream's present use waits in vain from now on.
  package mutating func detach(_ stream: UInt32) {
    let index = Int(stream) - 1
    guard slots.indices.contains(index), slots[index].object != nil else { return }
    slots[index].object = nil
    if case .leaving = slots[index].state { slots[index].state = .free }
    endUse(of: stream)
  }

  /// Names the present use of a stream, for what ends elsewhere.
  package func token(of stream: UInt32) -> StreamToken {
    let index = Int(stream) - 1
    return StreamToken(
      stream: stream, generation: slots.indices.contains(index) ? slots[index].generation : 0)
  }

  /// Whether the stream is still what it was when the token was made.
  package func isCurrent(_ token: StreamToken) -> Bool { self.token(of: token.stream) == token }

  private mutating func endUse(of stream: UInt32) {
    let index = Int(stream) - 1
    if slots.indices.contains(index) { slots[index].generation &+= 1 }
  }
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

  private mutating func publish(
    _ stream: UInt32, _ body: UnsafeRawBufferPointer, _ rules: ServerSessionRules
  ) throws(WireError) -> ServerAction {
    let (header, batch) = unsafe try PublishHeader.decode(body)
    guard case .publication(var credit) = self[stream] else { return try misplaced(stream, .publish) }
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
        try unsafe RecordLayout.validate(batch, count: header.count, maximumRecord: rules.maximumRecord)
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
    self[stream] = .publication(credit)
    return unsafe .append(stream: stream, count: header.count, batch: batch)
  }

  private mutating func demand(
    _ stream: UInt32, _ demand: Demand
  ) throws(WireError) -> ServerAction {
    let granted: UInt64
    switch self[stream] {
    case .subscription(let through): granted = through
    case .opening(let frame): granted = frame.grantedThrough
    default: return try misplaced(stream, .demand)
    }
    guard demand.grantedThrough > 0 else {
      return fault(
        stream, .invalidDemand, "DEMAND grants nothing; it must name the total of records, at least 1")
    }
    guard demand.grantedThrough > granted else { return .none }
    if case .opening(var frame) = self[stream] {
      frame.grantedThrough = demand.grantedThrough
      self[stream] = .opening(frame)
      return .none
    }
    self[stream] = .subscription(grantedThrough: demand.grantedThrough)
    return .demand(stream: stream, grantedThrough: demand.grantedThrough)
  }

  /// A subscription to a pattern begins with the last of the places where it goes on.
  private mutating func subscribePattern(
    _ stream: UInt32, _ body: UnsafeRawBufferPointer, _ rules: ServerSessionRules
  ) throws(WireError) -> ServerAction {
    let action = try open(stream, rules) { stream throws(WireError) in
      let frame = try unsafe Self.admit(SubscribePattern.self, body)
      if frame.more { return (.opening(frame), .none) }
      return (.subscription(grantedThrough: frame.grantedThrough), .subscribePattern(stream: stream, frame))
    }
    guard case .opening(let frame) = self[stream] else { return action }
    addPositions(frame.positions)
    return hasTooManyPositions(rules) ? tooManyPositions(stream, frame, rules) : action
  }

  private mutating func positions(
    _ stream: UInt32, _ more: Positions, _ rules: ServerSessionRules
  ) throws(WireError) -> ServerAction {
    guard case .opening(var frame) = self[stream] else { return try misplaced(stream, .positions) }
    do {
      try more.validateNames()
    } catch {
      removePositions(frame.positions)
      return fault(stream, error.code, error.message)
    }
    // So that what has come isn't copied with every frame.
    self[stream] = .ended
    frame.positions += more.positions
    addPositions(more.positions)
    if hasTooManyPositions(rules) { return tooManyPositions(stream, frame, rules) }
    guard more.more else {
      removePositions(frame.positions)
      frame.more = false
      self[stream] = .subscription(grantedThrough: frame.grantedThrough)
      return .subscribePattern(stream: stream, frame)
    }
    self[stream] = .opening(frame)
    return .none
  }

  private mutating func tooManyPositions(
    _ stream: UInt32, _ frame: SubscribePattern, _ rules: ServerSessionRules
  ) -> ServerAction {
    removePositions(frame.positions)
    return fault(
      stream, .limitReached,
      """
      positions in more than \(rules.maximumPositions) topics, or of more than \(rules.maximumPositionBytes) bytes, are on \
      their way, which is the broker's limit; use patterns that match fewer, or several connections
      """)
  }

  private func hasTooManyPositions(_ rules: ServerSessionRules) -> Bool {
    positions > rules.maximumPositions || positionBytes > rules.maximumPositionBytes
  }

  private mutating func addPositions(_ more: [TopicPosition]) {
    positions += more.count
    positionBytes += Self.memory(of: more)
  }

  private mutating func removePositions(_ gone: [TopicPosition]) {
    positions -= gone.count
    positionBytes -= Self.memory(of: gone)
  }

  /// A position, and the block of memory with its topic's name.
  private static func memory(of positions: [TopicPosition]) -> Int {
    positions.reduce(0) { $0 + MemoryLayout<TopicPosition>.stride + 32 + $1.topic.utf8.count }
  }

  private func commit(_ stream: UInt32, _ commit: Commit) throws(WireError) -> ServerAction {
    switch self[stream] {
    // The last records of a topic that has ended are committed behind COMPLETE.
    case .subscription, .ended: break
    default: return try misplaced(stream, .commit)
    }
    return .commit(stream: stream, nextOffset: commit.nextOffset)
  }

  private mutating func settle(
    _ stream: UInt32, _ body: UnsafeRawBufferPointer
  ) throws(WireError) -> ServerAction {
    guard case .subscription = self[stream] else { return try misplaced(stream, .settle) }
    do {
      return unsafe .settle(stream: stream, try Settle(body: body))
    } catch {
      // A verdict that this broker doesn't know is no reason to part.
      if error.code.endsConnection { throw error }
      return fault(stream, error.code, error.message)
    }
  }

  /// Opens a stream for what `decode` finds in the frame.
  private mutating func open(
    _ stream: UInt32, _ rules: ServerSessionRules,
    _ decode: (UInt32) throws(WireError) -> (State, ServerAction)
  ) throws(WireError) -> ServerAction {
    if let refusal = try refusal(stream, rules) { return refusal }
    do {
      let (state, action) = try decode(stream)
      endUse(of: stream)
      let index = Int(stream) - 1
      slots[index].state = state
      // What the number's former use has left for the client to commit.
      slots[index].object = nil
      return action
    } catch {
      // A newer client asks for what this broker doesn't know; that is no reason to part.
      if error.code.endsConnection { throw error }
      return fault(stream, error.code, error.message)
    }
  }

  private mutating func request(
    _ stream: UInt32, _ rules: ServerSessionRules, _ decode: (UInt32) throws(WireError) -> ServerAction
  ) throws(WireError) -> ServerAction {
    try open(stream, rules) { stream throws(WireError) in (.request, try decode(stream)) }
  }

  private mutating func renew(
    _ stream: UInt32, _ body: UnsafeRawBufferPointer, _ rules: ServerSessionRules
  ) throws(WireError) -> ServerAction {
    let action = try request(stream, rules) { stream throws(WireError) in
      unsafe .renew(stream: stream, try Authenticate(body: body).credentials)
    }
    guard case .renew = action else { return action }
    guard !isRenewing else {
      return fault(
        stream, .tooManyAttempts,
        "other credentials of this connection are being verified; wait for the answer")
    }
    isRenewing = true
    return action
  }

  private mutating func complete(
    _ stream: UInt32, _ complete: Complete
  ) throws(WireError) -> ServerAction {
    guard case .publication(let credit) = self[stream] else { return try misplaced(stream, .complete) }
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
    guard stream != 0, stream <= UInt32(slots.count) else {
      throw WireError(.invalidStream, "CANCEL on stream \(stream), which was never opened")
    }
    switch self[stream] {
    case .publication(let credit):
      leave(stream, credit)
      return .cancel(stream: stream)
    case .leaving: return .confirmCancel(stream: stream)
    case .subscription:
      self[stream] = .free
      return .cancel(stream: stream)
    case .opening(let frame): removePositions(frame.positions)
    case .request: slots[Int(stream) - 1].object = nil
    case .free, .ended: break
    }
    self[stream] = .free
    endUse(of: stream)
    return .confirmCancel(stream: stream)
  }

  private mutating func leave(_ stream: UInt32, _ credit: PublicationCredit) {
    self[stream] = object(stream) == nil ? .free : .leaving(credit)
  }
}

// MARK: - The stream table

extension ServerSession {
  /// Makes room for a stream that the client wants to open; says why it can't be.
  private mutating func refusal(
    _ stream: UInt32, _ rules: ServerSessionRules
  ) throws(WireError) -> ServerAction? {
    guard stream != 0, stream <= rules.maximumStreams else {
      throw WireError(
        .invalidStream, "stream \(stream) isn't in 1...\(rules.maximumStreams), which WELCOME announced")
    }
    switch self[stream] {
    case .free, .ended: break
    case .leaving:
      throw WireError(
        .invalidStream,
        "stream \(stream) was begun anew before CANCELLED had come; wait for it, or take another number")
    case .subscription, .opening, .publication, .request:
      throw WireError(.invalidStream, "stream \(stream) is in use already")
    }
    while slots.count < Int(stream) { slots.append(Slot()) }
    guard phase == .open else {
      return fault(stream, .shuttingDown, "the broker is stopping; connect to another or try again later")
    }
    return nil
  }

  /// A frame for a stream that isn't what the frame needs: dropped when the stream ended while it was under way, otherwise the two sides
  /// don't agree on what is open.
  private func misplaced(
    _ stream: UInt32, _ type: FrameType
  ) throws(WireError) -> ServerAction {
    if case .ended = self[stream] { return .none }
    throw WireError(.invalidStream, "\(type) on stream \(stream), which isn't open for it")
  }

  private mutating func fault(_ stream: UInt32, _ code: ErrorCode, _ message: String) -> ServerAction {
    if case .publication(let credit) = self[stream], object(stream) != nil {
      self[stream] = .leaving(credit)
    } else {
      self[stream] = .ended
    }
    return .fault(stream: stream, Fault(code: code, message: message))
  }

  private subscript(stream: UInt32) -> State {
    get {
      let index = Int(stream) - 1
      return slots.indices.contains(index) ? slots[index].state : .free
    }
    set {
      let index = Int(stream) - 1
      if slots.indices.contains(index) { slots[index].state = newValue }
    }
  }
}
