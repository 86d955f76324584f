import SluiceIO
import SluiceMQTT
import SluiceWire

/// The part of a connection that lasts: what the client's stream, the link and the hub refer to.
///
/// A connection on which nothing happens is packed: most of its memory would be room for what is under way. What it was is a short array of bytes then,
/// of which it is made again when the client sends something, when the broker does, or when its time is over.
///
/// ```
///  client's stream ─► MQTTHandle ─┬─ MQTTConnection ─► DoorLink      while something happens
///                                 └─ packed bytes   ◄─ DoorLink      while it is quiet
/// ```
// @unchecked: belongs to `shared.loop`. Other threads use it only through jobs on that loop.
final class MQTTHandle: ByteStreamHandler, @unchecked Sendable {
  private enum State {
    case awake(MQTTConnection)
    case quiet([UInt8], MQTTQuietExtras?)
    /// The broker has refused the client, and has no connection any more.
    case refused(MQTTRefusal)
    case ended
  }

  let shared: MQTTLoop
  let transport: any ByteStream
  let link: DoorLink
  private var state = State.ended
  /// When the client's silence is looked at.
  var timer: TimerToken? {
    get { timerNumber == 0 ? nil : TimerToken(number: timerNumber) }
    set { timerNumber = newValue?.number ?? 0 }
  }
  /// 0 for none, which needs no byte of its own: with that each idle client would take 16 bytes more.
  private var timerNumber: UInt64 = 0

  init(_ transport: any ByteStream, peer: SocketAddress, _ shared: MQTTLoop) {
    self.transport = transport
    self.shared = shared
    link = DoorLink(nil, peer: peer, on: shared.loop)
    let connection = MQTTConnection(self)
    state = .awake(connection)
    link.attach(connection)
    shared.traffic.sockets.add(1)
  }

  var loop: any EventLoop { shared.loop }

  /// Whether the connection is packed.
  var isQuiet: Bool { if case .quiet = state { true } else { false } }

  /// The connection, which is made again if it was packed; nil when it has ended.
  var connection: MQTTConnection? {
    switch state {
    case .awake(let connection): return connection
    case .quiet(let packed, let extras):
      let connection = MQTTConnection(self, unpacking: packed, extras)
      state = .awake(connection)
      link.hand(to: connection)
      return connection
    case .refused, .ended: return nil
    }
  }

  /// What waits for the client's CONNECT to refuse it; nil for others.
  private var refusal: MQTTRefusal? { if case .refused(let refusal) = state { refusal } else { nil } }

  /// The connection is packed, and gone.
  func rest(_ packed: [UInt8], _ extras: MQTTQuietExtras?) {
    state = .quiet(packed, extras)
    link.hand(to: self)
  }

  /// The connection has ended.
  func end() { state = .ended }

  /// The connection has ended, and its client is to be told why when its CONNECT comes.
  ///
  /// - Parameters:
  ///   - session: as far as the client has come.
  ///   - isRead: whether the client's stream has been started.
  func refuse(_ session: MQTTSession, _ error: MQTTError, isRead: Bool) {
    let refusal = MQTTRefusal(self, session, error)
    state = .refused(refusal)
    if !isRead { transport.start(self) }
    refusal.begin()
  }

  /// Has the connection look at the client's silence at that time.
  func wake(at time: MonotonicTime) {
    // The timer keeps the handle; the connection cancels it when it ends.
    timer = loop.schedule(at: time) { [self] in
      timer = nil
      connection?.timeHasCome()
    }
  }

  // MARK: The client's stream

  func streamReadable() {
    // First, without what making it again needs: mostly it is awake.
    if case .awake(let connection) = state { return connection.streamReadable() }
    guard let connection else { return refusal?.streamReadable() ?? () }
    connection.streamReadable()
  }

  func streamWritable() {
    guard let connection else { return refusal?.streamWritable() ?? () }
    connection.streamWritable()
  }

  func streamFailed(_ error: IOError) {
    guard let connection else { return refusal?.end() ?? () }
    connection.streamFailed(error)
  }

  /// What the client's own stream holds, such as one of TLS, changes without a turn of the door.
  func streamHoldsOther() { link.tellHeldBytes(heldBytes) }
}

// The link, while the connection is quiet.
extension MQTTHandle: DoorLinkClient {
  func linkStarted() { connection?.linkStarted() }

  func linkReceived(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) -> Bool {
    unsafe connection?.linkReceived(header, body) ?? true
  }

  func linkWritten() { connection?.linkWritten() }

  func linkDrained() { connection?.linkDrained() }

  func linkClosed() { connection?.linkClosed() }

  var heldBytes: Int {
    if case .awake(let connection) = state { connection.heldBytes } else { transport.heldBytes }
  }

  var obstacle: StreamObstacle? { transport.obstacle }
}
