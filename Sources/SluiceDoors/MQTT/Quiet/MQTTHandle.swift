import SluiceIO
import SluiceMQTT
import SluiceWire

/// The permanent part of a connection, to which the client's stream, the link and the hub refer.
///
/// A quiet connection is packed, because most of its memory would be reserved for data in flight. It becomes a short array of bytes, and is restored when the
/// client or the broker sends something, or when its timer fires.
///
/// ```
///  client's stream ─► MQTTHandle ─┬─ MQTTConnection ─► DoorLink      while it is active
///                                 └─ packed bytes   ◄─ DoorLink      while it is quiet
/// ```
// @unchecked: belongs to `shared.loop`. Other threads use it only through jobs on that loop.
final class MQTTHandle: ByteStreamHandler, @unchecked Sendable {
  private enum State {
    case awake(MQTTConnection)
    case quiet([UInt8], MQTTQuietExtras?)
    /// The broker has refused the client and closed the connection.
    case refused(MQTTRefusal)
    case ended
  }

  let shared: MQTTLoop
  let transport: any ByteStream
  let link: DoorLink
  private var state = State.ended
  /// Checks the client's keep-alive.
  var timer: TimerToken? {
    get { timerNumber == 0 ? nil : TimerToken(number: timerNumber) }
    set { timerNumber = newValue?.number ?? 0 }
  }
  /// 0 for none. An optional would make each idle client 16 bytes larger.
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

  /// The connection, unpacked if necessary; nil once it has ended.
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

  /// The refusal that waits for the client's CONNECT; nil without one.
  private var refusal: MQTTRefusal? { if case .refused(let refusal) = state { refusal } else { nil } }

  /// Replaces the connection by its packed form.
  func rest(_ packed: [UInt8], _ extras: MQTTQuietExtras?) {
    state = .quiet(packed, extras)
    link.hand(to: self)
  }

  /// The connection has ended.
  func end() { state = .ended }

  /// Replaces the connection, which has ended, by a refusal that waits for the client's CONNECT.
  ///
  /// - Parameters:
  ///   - session: the client's session so far.
  ///   - isRead: whether the client's stream has been started.
  func refuse(_ session: MQTTSession, _ error: MQTTError, isRead: Bool) {
    let refusal = MQTTRefusal(self, session, error)
    state = .refused(refusal)
    if !isRead { transport.start(self) }
    refusal.begin()
  }

  /// Schedules the check of the client's keep-alive for that time.
  func wake(at time: MonotonicTime) {
    // The timer retains the handle; the connection cancels it when it ends.
    timer = loop.schedule(at: time) { [self] in
      timer = nil
      connection?.timeHasCome()
    }
  }

  // MARK: The client's stream

  func streamReadable() {
    // The usual case, which needs no unpacking.
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

  /// Bytes that the client's own stream holds, such as TLS data, change outside the gateway's turns.
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
