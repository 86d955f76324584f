import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

/// One peer: bytes in, frames, the session's actions; frames and records out.
///
/// The shell around ``Session``, which decides, and ``Consumer``, which produces. Belongs to its loop; what it does for
/// topics is in `Connection+Streams`.
// @unchecked: belongs to `context.loop`. Others get at it only through jobs on that loop.
final class Connection: ByteStreamHandler, @unchecked Sendable {
  private enum Phase {
    case open
    /// What was answered so far is still written, then the connection closes; at that time in any case.
    case finishing(until: MonotonicTime)
    case closed
  }

  /// An open stream's object.
  enum Handle {
    case none
    case subscription(Consumer)
    case publication(Publication)
    /// A subscription whose topic has ended; what it was sent may still be committed.
    case committing(EndedCursor)
    /// Storage is asked where a subscription begins; the number tells which one that is.
    case starting(UInt64)

    var isOpen: Bool {
      switch self {
      case .subscription, .publication, .starting: true
      case .none, .committing: false
      }
    }
  }

  /// After one connection has written so much, it is the next one's turn.
  private static let turnBudget = 1 << 20
  /// With several subscriptions ready, each is served in portions of this.
  private static let portion = 64 << 10
  private static let lingerTime = Duration.seconds(1)
  /// While draining, a subscriber that could ask for more is waited for as long as it did something this recently.
  private static let drainPatience = Duration.milliseconds(500)

  let id: UInt64
  private let origin: PeerOrigin?
  unowned let context: LoopContext
  private(set) var clientName = ""
  /// The longest batch that fits a frame of the client's.
  private(set) var largestBatch = Limits.smallestFrame - DeliverHeader.size - RecordLayout.timeMarkSize
  /// Its place in the context's list, and whether it stands among those to be flushed, first or last.
  var index = 0
  var isReady = false
  var isDue = false

  var session = Session()
  var patterns = PatternCount()
  var open = OpenCounts()
  var effort = Effort()
  let quota = TopicQuota()
  /// What the client's connections have together; nil before the handshake is over.
  var account: IdentityAccount?
  var isRateTimerSet = false
  /// Nil where nobody is asked who they are.
  let admission: Admission?
  /// The number of the last publication, or subscription whose start was asked for: streams are used again.
  var lastNumber: UInt64 = 0
  /// By stream number less one.
  private var handles: [Handle] = []

  private let stream: any ByteStream
  private var decoder = FrameDecoder(maximumFrame: Limits.handshakeFrame, openingAt: .broker)
  private var keepalive: Keepalive
  private let handshakeDeadline: MonotonicTime
  private var phase = Phase.open
  private var isDraining = false
  /// Nothing is read: answers wait to be read by the peer, or memory is short.
  private var waitsForAnswers = false
  private var waitsForMemory = false
  /// What is ready isn't served before the identity may be sent more.
  private var isHeldByRate = false
  /// Since when the peer has taken nothing of what is pending; nil while nothing is.
  private var stalledSince: MonotonicTime?
  /// When something was last open, or asked for.
  private var lastUse: MonotonicTime
  /// Bytes that wait here, as they were last counted.
  private(set) var buffered = 0

  /// What was read behind the frame whose answer was one too many.
  private var unread: ArraySlice<UInt8> = []
  /// Encoded frames that haven't been written yet.
  private var answers: [UInt8] = []
  private var pending = PendingOutput()
  private var readySubscriptions = ReadyQueue<Consumer>()
  /// Publications with acknowledgements or grants to be told.
  private var duePublications: [Publication] = []

  private var core: BrokerCore { context.core }

  /// Bytes of answers, and of all kinds taken up for a write that came short, that wait for the peer to read.
  var waitingBytes: (answers: Int, pending: Int) { (answers.count, pending.byteCount) }

  init(id: UInt64, stream: any ByteStream, origin: PeerOrigin?, context: LoopContext) {
    self.id = id
    self.origin = origin
    self.stream = stream
    self.context = context
    let limits = context.core.configuration.limits
    keepalive = Keepalive(milliseconds: limits.keepalive, now: context.loop.now.nanoseconds)
    handshakeDeadline = context.loop.now + limits.handshake
    admission = context.core.authenticator == nil ? nil : Admission()
    lastUse = context.loop.now
    context.add(self)
    stream.start(self)
  }

  // MARK: Bytes in

  func streamReadable() {
    let result = unsafe stream.read(into: context.readBuffer)
    guard case .bytes(let count) = result else {
      if result != .wouldBlock { close() }
      return
    }
    guard case .open = phase else { return }
    keepalive.heard(at: context.loop.now.nanoseconds)
    effort.renew()
    let bytes = unsafe UnsafeRawBufferPointer(rebasing: context.readBuffer[..<count])
    let taken = unsafe takeUp(bytes)
    if taken < count { unread = unsafe ArraySlice(bytes[taken...]) }
    if decoder.heldBytes != 0 || !unread.isEmpty || buffered != 0 { countBuffered() }
  }

  /// Takes up the frames in `bytes`, until the answers to them are more than may wait, or they have been enough work for one turn. Reading
  /// stops there.
  ///
  /// - Returns: how many bytes were taken up; the rest is for later.
  private func takeUp(_ bytes: UnsafeRawBufferPointer) -> Int {
    let limit = core.configuration.limits.answers
    do {
      try unsafe decoder.decode(bytes) { header, body throws(WireError) in
        effort.tookFrame()
        guard try header.admission(at: .broker) == .take else { return !effort.isExhausted }
        let action = try unsafe session.receive(header, body, core.rules)
        effort.spend(action.effort)
        if let stream = action.beginning { try checkIsFree(stream) }
        perform(action)
        guard case .open = phase else { return false }
        return answers.count <= limit && !effort.isExhausted
      }
    } catch {
      fail(error)
    }
    guard case .open = phase else { return bytes.count }
    // A client sends nothing behind its HELLO before it has the WELCOME.
    if !isInHandshake { decoder.maximumFrame = core.configuration.limits.frame }
    if answers.count > limit { waitsForAnswers = true }
    if effort.isExhausted { context.makeReady(self) }
    updateReading()
    return decoder.takenBytes
  }

  private func updateReading() {
    guard case .open = phase else { return }
    stream.readsPaused = waitsForAnswers || waitsForMemory || effort.isExhausted
  }

  /// The answers that were too many are written, another turn has come, or there is memory again: goes on with what was read before, then
  /// with reading.
  private func resumeReading() {
    if effort.isExhausted || waitsForMemory { return }
    waitsForAnswers = false
    let taken = unsafe unread.withUnsafeBytes { unsafe takeUp($0) }
    unread = unread.dropFirst(taken)
    if unread.isEmpty { unread = [] }
  }

  /// Stops reading from a producer because there is too little memory, or goes on.
  func waitForMemory(_ waits: Bool) {
    guard case .open = phase, waits != waitsForMemory, !waits || open.publications > 0 else { return }
    waitsForMemory = waits
    if waits { core.metrics.add(.memoryPauses) }
    if !waits, answers.count <= core.configuration.limits.answers { resumeReading() }
    updateReading()
  }

  /// Counts what waits here. Called when that may have changed, not for every frame.
  private func countBuffered() {
    if case .closed = phase { return }
    let count =
      unread.count + decoder.heldBytes + answers.count + pending.ownBytes + session.positionBytes
    if count != buffered { context.buffered(count - buffered) }
    buffered = count
  }

  func streamWritable() {
    context.makeReady(self)
  }

  func streamFailed(_ error: IOError) {
    close()
  }

  /// Whether WELCOME wasn't sent yet.
  private var isInHandshake: Bool { session.phase == .handshake || session.phase == .authenticating }

  private var handshakeTimeout: WireError {
    let limit = core.configuration.limits.handshake
    return session.phase == .handshake
      ? WireError(.handshakeTimeout, "no HELLO came within \(limit)")
      : WireError(.handshakeTimeout, "the client couldn't be authenticated within \(limit); try again later")
  }

  /// Where the client is, and what protects what it sends.
  var peer: SocketAddress { stream.peer }
  var security: StreamSecurity? { stream.security }

  /// The handshake is over.
  func opened(_ agreement: ServerHandshake.Agreement) {
    // Of nobody's connections there may be any number.
    if account == nil { try? enter("") }
    clientName = agreement.clientName
    largestBatch = agreement.clientMaximumFrame - DeliverHeader.size - RecordLayout.timeMarkSize
    keepalive = Keepalive(milliseconds: agreement.welcome.keepalive, now: context.loop.now.nanoseconds)
    core.agreed(keepalive: agreement.welcome.keepalive)
    send(agreement.welcome, stream: 0)
    if core.stage.load(ordering: .acquiring) != .serving { drain() }
  }

  // MARK: Streams

  func handle(_ stream: UInt32) -> Handle {
    let index = Int(stream) - 1
    return handles.indices.contains(index) ? handles[index] : .none
  }

  /// All that may be open.
  var streams: Range<UInt32> { 1..<UInt32(handles.count + 1) }

  func setHandle(_ stream: UInt32, _ handle: Handle) {
    let index = Int(stream) - 1
    while handles.count <= index { handles.append(.none) }
    count(handles[index], -1)
    handles[index] = handle
    count(handle, 1)
  }

  /// Lets go of what a stream has, if it has anything.
  func releaseStream(_ stream: UInt32) {
    switch handle(stream) {
    case .none: return
    case .committing, .starting: break
    case .subscription(let subscription):
      subscription.leave()
      subscription.place = .ended
    case .publication(let publication):
      publication.tap.remove(publication)
      giveBack(publication)
    }
    setHandle(stream, .none)
  }

  /// The client has asked for something.
  func noteUse() { lastUse = context.loop.now }

  // MARK: Frames out

  /// Puts a frame behind those that wait to be written.
  func send(_ frame: some Frame, stream: UInt32) {
    frame.encode(stream: stream, into: &answers)
    context.makeReady(self)
  }

  /// The subscription has demand or news: it will be served at the end of this turn.
  func makeReady(_ subscription: Consumer) {
    guard case .none = subscription.place else { return }
    subscription.place = .ready
    readySubscriptions.append(subscription)
    context.makeReady(self)
  }

  /// The publication has something to be told at the end of this turn.
  func makeDue(_ publication: Publication) {
    guard !publication.isDue else { return }
    publication.isDue = true
    duePublications.append(publication)
    context.makeDue(self)
  }

  /// Writes what there is to write, as far as the transport takes it and it is this connection's turn. Called at the end of a turn.
  func flush() {
    writeOut()
    if !answers.isEmpty || !pending.isEmpty || buffered != 0 { countBuffered() }
  }

  private func writeOut() {
    if case .closed = phase { return }
    if !pending.isEmpty {
      switch pending.write(to: stream) {
      case .failure(let error): return streamFailed(error)
      // Records found room again, so the peer has read some: a PING may take long to get to it behind all that it hasn't read yet.
      // Without records it isn't behind anything, and only an answer to it counts.
      case .success(let count):
        if count > 0, pending.carriesRecords { keepalive.heard(at: context.loop.now.nanoseconds) }
        if count > 0 { stalledSince = pending.isEmpty ? nil : context.loop.now }
      }
      guard pending.isEmpty else { return }
    }
    if effort.isExhausted, case .open = phase {
      effort.renew()
      resumeReading()
    }
    settlePublications()
    let gather = context.gather
    var budget = Self.turnBudget
    while budget > 0 {
      gather.append(&answers)
      serveSubscriptions(gather)
      budget -= gather.takePassed()
      guard !gather.isEmpty else { break }
      budget -= gather.bytes
      switch gather.write(to: stream) {
      case .success(let rest):
        pending = rest
        if !rest.isEmpty { stalledSince = context.loop.now }
      case .failure(let error): return streamFailed(error)
      }
      // The answers are under way. The records still to come, of which there may be no end, don't keep the peer from being heard.
      if waitsForAnswers, case .open = phase { resumeReading() }
      guard pending.isEmpty else { return }
    }
    if !readySubscriptions.isEmpty { return isHeldByRate ? () : context.makeReady(self) }
    if case .finishing = phase { return close() }
  }

  private func serveSubscriptions(_ gather: Gather) {
    isHeldByRate = false
    if readySubscriptions.isEmpty { return }
    var limit = core.configuration.limits.gather
    if account?.delivering != nil {
      let room = deliveryRoom(atMost: limit)
      isHeldByRate = room == 0
      if isHeldByRate { return }
      limit = min(limit, gather.work + room)
    }
    let before = gather.bytes
    var records: UInt64 = 0
    defer {
      account?.delivering?.spend(records: records, bytes: UInt64(max(gather.bytes - before, 0)))
    }
    while gather.work < limit, gather.hasRoom, let subscription = readySubscriptions.popFirst() {
      guard case .ready = subscription.place else { continue }
      subscription.place = .none
      let room = limit - gather.work
      let bytes = readySubscriptions.isEmpty ? room : min(room, Self.portion)
      let spent = subscription.credit.spent
      defer { records &+= subscription.credit.spent &- spent }
      switch subscription.produce(into: gather, bytes: bytes) {
      case .more:
        subscription.place = .ready
        readySubscriptions.append(subscription)
      case .waiting:
        subscription.wait()
      case .starved, .loading:
        break
      case .ended:
        session.ended(subscription.stream)
        let cursor = subscription.endedCursor
        releaseStream(subscription.stream)
        if let cursor { setHandle(subscription.stream, .committing(cursor)) }
      }
    }
  }

  /// One ACK and one DEMAND per publication and turn, however many batches came.
  private func settlePublications() {
    guard !duePublications.isEmpty else { return }
    for publication in duePublications {
      publication.isDue = false
      // Only if the stream is still this publication's.
      if case .publication(let current) = handle(publication.stream), current === publication {
        settle(publication)
      }
    }
    duePublications.removeAll(keepingCapacity: duePublications.capacity <= 16)
  }

  /// Tells a producer what is in the log, and what more it may send.
  func settle(_ publication: Publication) {
    // It doesn't know yet that the stream is open.
    if publication.isOpening { return }
    if let ack = publication.takeAck() { ack.encode(stream: publication.stream, into: &answers) }
    grantMore(to: publication)?.encode(stream: publication.stream, into: &answers)
  }

  // MARK: The end

  /// Tells the peer what it did wrong, and closes.
  func fail(_ error: WireError) {
    send(Fault(error), stream: 0)
    finish()
  }

  /// Sends what was answered so far, and nothing more.
  private func finish() {
    guard case .open = phase else { return }
    phase = .finishing(until: context.loop.now + Self.lingerTime)
    releaseStreams()
    stream.readsPaused = true
    context.makeReady(self)
  }

  /// Closes at once. The peer's subscriptions and publications are gone with it.
  ///
  /// - Parameter abruptly: true to reset the line rather than to wait for the peer's half to be closed too.
  func close(abruptly: Bool = false) {
    if case .closed = phase { return }
    phase = .closed
    releaseStreams()
    pending = PendingOutput()
    context.buffered(-buffered)
    buffered = 0
    if abruptly { stream.abort() } else { stream.close() }
    context.remove(self)
    core.release(from: origin)
  }

  private func releaseStreams() {
    abandonAttempt()
    for index in handles.indices { releaseStream(UInt32(index + 1)) }
    leaveAccount()
    // Requests that are under way have nobody any more who waits for them.
    session = Session()
    handles = []
    duePublications = []
    readySubscriptions = ReadyQueue()
  }

  /// The broker is stopping: says so. What is granted is still delivered; see ``sweep()``.
  func drain() {
    guard !isDraining, case .open = phase else { return }
    isDraining = true
    guard !isInHandshake else { return finish() }
    session.drain()
    send(
      GoAway(code: .shuttingDown, message: "the broker is stopping; connect to another or try again later"),
      stream: 0)
  }

  /// Whether every subscription has what it may have of topics that no longer grow.
  private var isDrained: Bool {
    guard pending.isEmpty, answers.isEmpty else { return false }
    let silence = Duration.nanoseconds(keepalive.silence(at: context.loop.now.nanoseconds))
    let patient = silence < Self.drainPatience
    for handle in handles {
      switch handle {
      case .subscription(let subscription):
        if subscription.isOwed || (patient && subscription.isBehind) { return false }
      case .publication(let publication):
        if publication.owesAck || publication.ends != nil { return false }
      case .none, .committing, .starting: break
      }
    }
    return true
  }

  // MARK: What time brings

  /// Called now and then: pings a silent peer, gives up a dead one.
  func sweep() {
    let now = context.loop.now
    switch phase {
    case .closed: return
    case .finishing(let deadline): return now >= deadline ? close() : ()
    case .open: break
    }
    if isInHandshake {
      if now >= handshakeDeadline {
        core.metrics.add(.handshakeTimeouts)
        fail(handshakeTimeout)
      }
      return
    }
    if checkExpiry() { return }
    // Nothing is read from it, so nothing can be heard.
    if waitsForMemory { keepalive.heard(at: now.nanoseconds) }
    switch keepalive.check(at: now.nanoseconds) {
    case .sleep: break
    case .ping: send(Ping(token: id), stream: 0)
    case .expired: return giveUp()
    }
    pending.releaseRetiredSegments()
    countBuffered()
    if let stalledSince, isOver(core.configuration.limits.write, since: stalledSince, now) {
      return leaveUnread()
    }
    let patience = core.configuration.limits.idle
    if patience > .zero {
      if handles.contains(where: \.isOpen) || session.hasRequests { lastUse = now }
      if isOver(patience, since: lastUse, now) { return endIdle() }
    }
    if isDraining, core.stage.load(ordering: .acquiring) == .draining, isDrained { finish() }
  }

  private func isOver(_ limit: Duration, since time: MonotonicTime, _ now: MonotonicTime) -> Bool {
    limit > .zero && now >= time + limit
  }

  /// The peer reads nothing: what it is told of that it won't read either.
  private func leaveUnread() {
    core.metrics.add(.writeTimeouts)
    fail(
      WireError(
        .writeTimeout,
        "the client has read nothing for \(core.configuration.limits.write) of what was sent to it; ask only for what is read, or have the time raised (--write-timeout)"
      ))
    flush()
    close(abruptly: true)
  }

  private func endIdle() {
    core.metrics.add(.idleTimeouts)
    fail(
      WireError(
        .idleTimeout,
        "nothing was open on this connection for \(core.configuration.limits.idle); connect again when there is something to do, or have the time raised (--idle-timeout)"
      ))
  }

  /// All connections together have too much waiting, and this one the most of them.
  func closeForBuffering() {
    core.metrics.add(.closedForBuffering)
    core.configuration.report(
      .closedForBuffering(connection: id, client: clientName, bytes: buffered))
    fail(
      WireError(
        .limitReached,
        "the broker's connections have more than \(core.configuration.limits.buffered) bytes waiting, which is the limit, and this one the most of them; read what is sent, and send frames whole"
      ))
    flush()
    close(abruptly: true)
  }

  /// The peer is dead, as far as one can know: says so, for the case that only its side of the line is, and frees everything.
  private func giveUp() {
    core.metrics.add(.keepaliveTimeouts)
    let deadline = (keepalive.deadline ?? 0) / 1_000_000
    fail(WireError(.keepaliveTimeout, "nothing was heard from the client for \(deadline) ms"))
    flush()
    // Nobody is there to close the other half.
    close(abruptly: true)
  }
}
