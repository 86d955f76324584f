import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceSession
import SluiceTopics
import SluiceWire
import Synchronization

/// A connection of one client: reads bytes and frames, performs the session's actions, and writes frames and records.
///
/// The I/O around ``ServerSession``, which decides, and ``Consumer``, which produces. Belongs to its loop. The extensions Input, Streams, Output, Deadlines
/// and Ending have its behaviour.
// @unchecked: belongs to `context.loop`. Other threads use it only through jobs on that loop.
final class Connection: ByteStreamHandler, @unchecked Sendable {
  enum Phase {
    case open
    /// The answers so far are written, then the connection closes, at that time at the latest.
    case finishing(until: MonotonicTime)
    case closed
  }

  let id: UInt64
  let origin: PeerOrigin?
  let acceptedAt: MonotonicTime
  unowned let context: LoopContext
  private var madeReference: ConnectionReference?
  var clientName = ""
  /// The longest batch that fits a frame of the client.
  private(set) var largestBatch = Limits.smallestFrame - DeliverHeader.size - RecordLayout.timeMarkSize
  /// Its index in the context's list, and whether it is in the queue of ready or of due connections.
  var index = 0
  var isReady = false
  var isDue = false

  var session = ServerSession()
  var patterns = PatternCount()
  var open = OpenCounts()
  var workBudget = WorkBudget()
  /// Work that frames have begun and that exceeded a turn's budget, in order.
  var unfinishedWork = ReadyQueue<UnfinishedWork>()
  let quota = TopicQuota()
  /// The rates that the client's connections share; nil before the handshake is complete.
  var account: IdentityAccount?
  var isRateTimerSet = false
  /// Nil for a broker whose clients don't authenticate.
  let admission: Admission?

  let stream: any ByteStream
  var decoder = FrameDecoder(maximumFrame: Limits.handshakeFrame, openingAt: .broker)
  var keepalive: Keepalive
  let handshakeDeadline: MonotonicTime
  var phase = Phase.open
  /// The error that the client was sent before its connection was closed.
  var lastWord: WireError?
  var isDraining = false
  /// Reading is paused: the client has too many unread answers, or memory is short.
  var waitsForAnswers = false
  var waitsForMemory = false
  /// Ready subscriptions wait until the identity's rate allows more.
  var isHeldByRate = false
  /// Since when the client has read nothing of the pending output; nil while none is pending.
  var stalledSince: MonotonicTime?
  /// When a stream was last open, or a request last made.
  var lastUse: MonotonicTime
  /// The buffered bytes when they were last counted.
  var buffered = 0

  /// Bytes that were read and not handled yet.
  var unread: ArraySlice<UInt8> = []
  /// Encoded frames that haven't been written yet.
  var answers: [UInt8] = []
  var pending = PendingOutput()
  /// The memory of the session's tables.
  let keptTables: KeptMemory.Share
  var readySubscriptions = ReadyQueue<Consumer>()
  /// Publications with acknowledgements or grants to send.
  var duePublications: [PublicationStream] = []

  var core: BrokerCore { context.core }

  /// Whether the client doesn't read what it was sent.
  var isBlocked: Bool { !pending.isEmpty }

  /// Bytes of answers, and bytes of all kinds of an incomplete write, that wait for the client to read.
  var waitingBytes: (answers: Int, pending: Int) { (answers.count, pending.byteCount) }

  init(id: UInt64, stream: any ByteStream, origin: PeerOrigin?, context: LoopContext) {
    self.id = id
    self.origin = origin
    self.stream = stream
    self.context = context
    let limits = context.core.configuration.limits
    keepalive = Keepalive(milliseconds: limits.keepalive, now: context.loop.now.nanoseconds)
    handshakeDeadline = context.loop.now + limits.handshake
    keptTables = KeptMemory.Share(context.core.memory.kept)
    admission = context.core.authenticator == nil ? nil : Admission()
    acceptedAt = context.loop.now
    lastUse = context.loop.now
    context.add(self)
    stream.start(self)
  }

  /// Made on first use: most connections that only subscribe never need it.
  var reference: ConnectionReference {
    if let madeReference { return madeReference }
    let made = ConnectionReference(self, on: context.loop)
    madeReference = made
    return made
  }

  /// Makes the reference ignore completions that arrive after the connection has closed.
  func clearReference() {
    madeReference?.clear()
  }

  /// Whether WELCOME hasn't been sent yet.
  var isInHandshake: Bool { session.phase == .handshake || session.phase == .authenticating }

  /// The client's address, and the encryption of the connection.
  var peer: SocketAddress { stream.peer }
  var security: StreamSecurity? { stream.security }

  /// Completes the handshake.
  func opened(_ agreement: ServerHandshake.Agreement) {
    // Anonymous connections have no limit per identity.
    if account == nil { try? enter("") }
    clientName = agreement.clientName
    largestBatch = agreement.clientMaximumFrame - DeliverHeader.size - RecordLayout.timeMarkSize
    keepalive = Keepalive(milliseconds: agreement.welcome.keepalive, now: context.loop.now.nanoseconds)
    context.agreed(keepalive: agreement.welcome.keepalive)
    send(agreement.welcome, stream: 0)
    report(.opened(asClient))
    if core.stage.present != .serving { drain() }
  }

  /// Restarts the idle deadline after a request.
  func noteUse() { lastUse = context.loop.now }

  /// The client as events name it.
  var asClient: BrokerEvent.Client {
    BrokerEvent.Client(connection: id, name: clientName, identity: identity.name, peer: peer)
  }

  func report(_ event: BrokerEvent) { context.core.configuration.report(event) }

  // MARK: Frames out

  /// Appends a frame to the pending answers.
  func send(_ frame: some Frame, stream: UInt32) {
    frame.encode(stream: stream, into: &answers)
    context.makeReady(self)
  }

  /// Has a subscription with demand or a change served at the end of this turn.
  func makeReady(_ subscription: Consumer) {
    guard case .none = subscription.place else { return }
    subscription.place = .ready
    readySubscriptions.append(subscription)
    context.makeReady(self)
  }

  /// Has a publication's acknowledgements and grants sent at the end of this turn.
  func makeDue(_ publication: PublicationStream) {
    duePublications.append(publication)
    context.makeDue(self)
  }
}

/// A reference to a connection for completions on other loops: a commit, an answer of the store, the loss of a cursor to another client.
///
/// A closed connection isn't called. A weak reference would do the same, but it makes the runtime count every reference to the connection by its slow
/// path, several for each batch.
// @unchecked: `connection` belongs to `loop`.
final class ConnectionReference: @unchecked Sendable {
  private let loop: any EventLoop
  /// Nil when the connection has closed. Its context retains it until then, and a loop that has released its context runs no jobs.
  private unowned var connection: Connection?

  init(_ connection: Connection, on loop: any EventLoop) {
    self.connection = connection
    self.loop = loop
  }

  /// Calls `body` on the connection's loop, unless the connection has closed by then. From any thread.
  func execute(_ body: @escaping @Sendable (Connection) -> Void) {
    loop.execute { [self] in call(body) }
  }

  /// Calls `body` on the connection's loop after a delay, unless the connection has closed by then. On the loop.
  func schedule(after delay: Duration, _ body: @escaping @Sendable (Connection) -> Void) {
    _ = loop.schedule(after: delay) { [self] in call(body) }
  }

  private func call(_ body: (Connection) -> Void) {
    if let connection { body(connection) }
  }

  /// Has no further `body` called. On the loop.
  func clear() {
    connection = nil
  }
}
