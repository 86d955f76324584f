import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire

/// A connection of one client: reads bytes and frames, runs the session's actions, and writes frames and records.
///
/// It owns the transport; its ``StreamMultiplexer`` owns the streams. Belongs to its loop. Its behaviour is in the extensions Handshake, Input,
/// Output, Deadlines and Ending.
// @unchecked: belongs to `context.loop`. Other threads use it only through jobs on that loop.
final class Connection: ByteStreamHandler, @unchecked Sendable {
  enum Phase {
    case open
    /// The connection closes after the answers so far are written, at that time at the latest.
    case finishing(until: MonotonicTime)
    case closed
  }

  let origin: PeerOrigin?
  /// Whether the connection is in the queue of ready or of due connections.
  @safe @exclusivity(unchecked) var isReady = false
  @safe @exclusivity(unchecked) var isDue = false
  var isDraining = false
  /// Reading is paused: the client has too many unread answers, or memory is short.
  var waitsForAnswers = false
  var waitsForMemory = false
  let acceptedAt: MonotonicTime
  unowned let context: LoopContext
  let client: ConnectedClient
  let streams: StreamMultiplexer
  let stream: any ByteStream
  // Handling a frame never uses the decoder that has produced it, so accesses don't overlap.
  @safe @exclusivity(unchecked) var decoder = FrameDecoder(
    maximumFrame: Limits.handshakeFrame, openingAt: .broker)
  @safe @exclusivity(unchecked) var keepalive: Keepalive
  @safe @exclusivity(unchecked) var phase = Phase.open
  /// The counted bytes of the session's tables, and their charge; nil before the first stream.
  private var tableBytes: Int32 = 0
  private var tableCharge: KeptAccount.Charge?
  /// The error that was sent to the client before its connection was closed.
  @OutOfLine var lastWord: WireError? = nil
  /// The time since which the client has read none of the pending output; nil while none is pending.
  var stalledSince: MonotonicTime?
  /// Its index in the context's list.
  var index: Int32 = 0
  /// The last time at which a stream was open, or a request was made.
  @safe @exclusivity(unchecked) var lastUse: MonotonicTime
  /// The buffered bytes when they were last counted.
  var buffered = 0

  /// Bytes of frames that were read and written since the connection was accepted.
  @safe @exclusivity(unchecked) private(set) var traffic = (received: 0, sent: 0)

  /// Bytes that were read and not handled yet.
  @safe @exclusivity(unchecked) var unread: [UInt8] = []
  @safe @exclusivity(unchecked) var pending = PendingOutput()

  var id: UInt64 { client.connection }
  var core: BrokerCore { client.core }
  /// Whether the other side is a part of the broker instead of a client.
  var isOwnPart: Bool { stream.isOwnPart }

  /// Bytes of answers, and bytes of all kinds of an incomplete write, that wait for the client to read.
  var waitingBytes: (answers: Int, pending: Int) { (streams.answers.count, pending.byteCount) }

  init(id: UInt64, stream: any ByteStream, origin: PeerOrigin?, context: LoopContext) {
    self.origin = origin
    self.stream = stream
    self.context = context
    client = ConnectedClient(connection: id, stream: stream, core: context.core)
    streams = StreamMultiplexer(client, on: context.topics, routing: context.relay)
    let limits = context.core.configuration.limits
    keepalive = Keepalive(milliseconds: limits.keepalive, now: context.loop.now.nanoseconds)
    acceptedAt = context.loop.now
    lastUse = context.loop.now
    streams.transport = self
    context.add(self)
    stream.start(self)
  }

  /// Counts the memory of the session's tables.
  func countTables(_ bytes: Int) {
    let bytes = Int32(clamping: bytes)
    guard bytes != tableBytes else { return }
    tableBytes = bytes
    if tableCharge == nil { tableCharge = client.kept.take(0, isPlain: true) }
    tableCharge?.set(to: Int(bytes))
  }

  /// Counts bytes that were read.
  func countReceived(_ bytes: Int, in context: LoopContext) {
    context.topics.received(bytes: bytes)
    traffic.received &+= bytes
  }

  /// Counts bytes that were written; a negative number takes back bytes that were counted and not written.
  func countSent(_ bytes: Int, in context: LoopContext) {
    context.topics.sent(bytes: bytes)
    traffic.sent &+= bytes
  }

  /// Appends a frame of the connection to the answers.
  func send(_ frame: some Frame) { streams.send(frame, stream: 0) }
}

extension Connection: StreamTransport {
  var blockedSince: MonotonicTime? { pending.isEmpty ? nil : stalledSince }

  var obstacle: StreamObstacle? { stream.obstacle }

  func makeReady() { context.makeReady(self) }

  func makeDue() { context.makeDue(self) }

  func held(_ change: Int) {
    if case .closed = phase { return }
    context.buffered(change)
    buffered += change
  }
}
