import SluiceIO
import SluiceLog
import SluiceSession
import SluiceWire
import Synchronization

/// One peer: bytes in, frames, the session's actions; frames and records out.
///
/// The shell around ``ServerSession``, which decides, and ``Consumer``, which produces. Belongs to its loop. Here is what it has; what it does is in
/// extensions: Input, Streams, Output, Deadlines, Ending.
// @unchecked: belongs to `context.loop`. Others get at it only through jobs on that loop.
final class Connection: ByteStreamHandler, @unchecked Sendable {
  enum Phase {
    case open
    /// What was answered so far is still written, then the connection closes; at that time in any case.
    case finishing(until: MonotonicTime)
    case closed
  }

  let id: UInt64
  let origin: PeerOrigin?
  let acceptedAt: MonotonicTime
  unowned let context: LoopContext
  private var madeReference: ConnectionReference?
  var clientName = ""
  /// The longest batch that fits a frame of the client's.
  private(set) var largestBatch = Limits.smallestFrame - DeliverHeader.size - RecordLayout.timeMarkSize
  /// Its place in the context's list, and whether it stands among those to be flushed, first or last.
  var index = 0
  var isReady = false
  var isDue = false

  var session = ServerSession()
  var patterns = PatternCount()
  var open = OpenCounts()
  var workBudget = WorkBudget()
  /// What frames have begun and a turn's workBudget didn't suffice for, in order.
  var unfinishedWork = ReadyQueue<UnfinishedWork>()
  let quota = TopicQuota()
  /// What the client's connections have together; nil before the handshake is over.
  var account: IdentityAccount?
  var isRateTimerSet = false
  /// Nil where nobody is asked who they are.
  let admission: Admission?

  let stream: any ByteStream
  var decoder = FrameDecoder(maximumFrame: Limits.handshakeFrame, openingAt: .broker)
  var keepalive: Keepalive
  let handshakeDeadline: MonotonicTime
  var phase = Phase.open
  /// What the peer was told before its connection was closed.
  var lastWord: WireError?
  var isDraining = false
  /// Nothing is read: answers wait to be read by the peer, or memory is short.
  var waitsForAnswers = false
  var waitsForMemory = false
  /// What is ready isn't served before the identity may be sent more.
  var isHeldByRate = false
  /// Since when the peer has taken nothing of what is pending; nil while nothing is.
  var stalledSince: MonotonicTime?
  /// When something was last open, or asked for.
  var lastUse: MonotonicTime
  /// Bytes that wait here, as they were last counted.
  var buffered = 0

  /// What was read behind the frame whose answer was one too many.
  var unread: ArraySlice<UInt8> = []
  /// Encoded frames that haven't been written yet.
  var answers: [UInt8] = []
  var pending = PendingOutput()
  /// Of what is kept besides records: its tables of streams.
  let keptTables: KeptMemory.Share
  var readySubscriptions = ReadyQueue<Consumer>()
  /// Publications with acknowledgements or grants to be told.
  var duePublications: [PublicationStream] = []

  var core: BrokerCore { context.core }

  /// Whether the peer doesn't read what it was sent.
  var isBlocked: Bool { !pending.isEmpty }

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
    keptTables = KeptMemory.Share(context.core.memory.kept)
    admission = context.core.authenticator == nil ? nil : Admission()
    acceptedAt = context.loop.now
    lastUse = context.loop.now
    context.add(self)
    stream.start(self)
  }

  /// Made when it is first needed: most connections that only subscribe never need it.
  var reference: ConnectionReference {
    if let madeReference { return madeReference }
    let made = ConnectionReference(self, on: context.loop)
    madeReference = made
    return made
  }

  /// The connection has closed: what ends elsewhere from now on isn't for it.
  func clearReference() {
    madeReference?.clear()
  }

  /// Whether WELCOME wasn't sent yet.
  var isInHandshake: Bool { session.phase == .handshake || session.phase == .authenticating }

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
    context.agreed(keepalive: agreement.welcome.keepalive)
    send(agreement.welcome, stream: 0)
    report(.opened(asClient))
    if core.stage.load(ordering: .acquiring) != .serving { drain() }
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

  /// The publication has something to tell at the end of this turn.
  func makeDue(_ publication: PublicationStream) {
    duePublications.append(publication)
    context.makeDue(self)
  }
}
