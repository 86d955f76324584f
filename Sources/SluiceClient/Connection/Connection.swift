import SluiceIO
import SluiceSession
import SluiceTLS
import SluiceWire

/// One connection to a broker: its transport, handshake, keepalive and end.
///
/// ``StreamMultiplexer`` handles the frames. The transport retains the connection until it is closed. On the loop only.
@safe
final class Connection: ByteStreamHandler {
  typealias HandshakeCompletion = (Result<Welcome, ClientError>) -> Void

  /// The sizes of the read buffer: the first one, and the one up to which a buffer grows that was filled.
  private static let readSizes = (least: 16 << 10, most: 512 << 10)

  let core: ClientCore
  private let address: SocketAddress
  /// The node of a cluster that the connection is to; nil for the client's own broker.
  let node: DirectLink?
  private let transport: any ByteStream
  private(set) var streams: StreamMultiplexer!
  private var handshakeCompletion: HandshakeCompletion?
  private var isClosed = false

  private var decoder = FrameDecoder(maximumFrame: Limits.handshakeFrame, openingAt: .client)
  private var readBuffer: UnsafeMutableRawBufferPointer
  /// The transport has taken only a part of the output.
  private var isOutputWaiting = false
  private var watchTimer: TimerToken?
  /// The credentials in HELLO, until the end of the handshake.
  private var credentials: Credentials
  private(set) var renewal: CredentialsRenewal?

  /// Sends HELLO.
  ///
  /// - Parameters:
  ///   - address: the address of the server.
  ///   - node: see ``node``.
  ///   - completion: called once, with the broker's answer or with the failure of the handshake.
  init(
    stream: any ByteStream, core: ClientCore, address: SocketAddress, node: DirectLink?,
    credentials: Credentials, completion: @escaping HandshakeCompletion
  ) {
    transport = stream
    self.core = core
    self.address = address
    self.node = node
    self.credentials = credentials
    handshakeCompletion = completion
    unsafe readBuffer = .allocate(byteCount: Self.readSizes.least, alignment: 16)
    streams = StreamMultiplexer(core, of: self)
    let options = core.options
    output.send(
      Hello(
        versions: Limits.versions, features: options.routing == .direct ? Feature.redirects : 0,
        maximumFrame: UInt32(clamping: max(options.maximumFrame, Limits.smallestFrame)),
        keepalive: options.keepaliveMilliseconds,
        name: options.name, credentials: credentials),
      stream: 0)
    stream.start(self)
    flush()
  }

  deinit {
    unsafe readBuffer.deallocate()
  }

  private var loop: any EventLoop { core.loop }
  private var output: ConnectionOutput { streams.output }

  // MARK: Bytes in

  func streamReadable() {
    switch unsafe transport.read(into: readBuffer) {
    case .wouldBlock: return
    case .end: return lost()
    case .failed(let error): return lost(error)
    case .bytes(let count): take(count)
    }
  }

  private func take(_ count: Int) {
    let now = loop.now.nanoseconds
    let streams: StreamMultiplexer = streams
    streams.output.session.heard(at: now)
    do {
      try unsafe decoder.decode(UnsafeRawBufferPointer(rebasing: readBuffer[..<count])) {
        header, body throws(WireError) in
        try unsafe streams.receive(header, body, at: now)
        return !isClosed
      }
    } catch {
      broken(error)
    }
    if isClosed { return }
    // Set between reads, since the decoder can't change its limit while it decodes. WELCOME arrives alone, because nothing was requested before it.
    if !isHandshake { decoder.maximumFrame = max(core.options.maximumFrame, Limits.smallestFrame) }
    if unsafe count == readBuffer.count, count < Self.readSizes.most { growReadBuffer() }
  }

  private func growReadBuffer() {
    let size = unsafe min(readBuffer.count * 4, Self.readSizes.most)
    unsafe readBuffer.deallocate()
    unsafe readBuffer = .allocate(byteCount: size, alignment: 16)
  }

  // MARK: Bytes out

  func streamWritable() {
    // Directly, since the core doesn't know this connection before the end of the handshake.
    flush()
  }

  /// Sends grants and records as far as the transport takes them. Called at the end of a turn.
  func flush() {
    if isClosed { return }
    streams.fillOutput()
    let waiting = output.count
    if let error = output.write(to: transport) { return lost(error) }
    // A transport that takes bytes again shows that the broker reads. The broker may have nothing to send meanwhile, and on a slow line
    // a PING behind the waiting bytes may take longer than the keepalive time.
    if isOutputWaiting, output.count < waiting { output.session.heard(at: loop.now.nanoseconds) }
    isOutputWaiting = output.count > 0
    // A full transport reports when it is writable; otherwise the loop's other connections have their turn first.
    if output.count == 0, output.hasMore { core.flushSoon() }
  }

  // MARK: Handshake and keepalive

  private var isHandshake: Bool { output.session.phase == .handshake }

  func opened(_ welcome: Welcome) {
    watch()
    let identity = ClientIdentity(name: welcome.identity, expires: welcome.expires)
    renewal = CredentialsRenewal(credentials, of: self, expires: identity?.expires)
    credentials = .none
    handshakeCompletion.take()?(.success(welcome))
  }

  private func watch() {
    watchTimer = nil
    if isClosed { return }
    let time: UInt64
    switch output.session.watch(at: loop.now.nanoseconds) {
    case .sleep(let until): time = until
    case .ping(let token, let next):
      output.send(Ping(token: token), stream: 0)
      time = next
    case .expired:
      let silence = Duration.milliseconds(Int(streams.welcome?.keepalive ?? 0))
      // The broker gets this if only its sending direction has failed.
      sendLast(WireError(.keepaliveTimeout, "nothing was heard from the broker for \(silence)"))
      return core.lost(
        self,
        ClientError(
          .keepaliveTimeout,
          "nothing was heard from the broker at \(address) for \(silence); it hangs, or the network is gone"
        ))
    }
    guard time != .max else { return }
    watchTimer = loop.schedule(at: MonotonicTime(nanoseconds: time)) { [weak self] in self?.watch() }
  }

  // MARK: End

  func streamFailed(_ error: IOError) {
    lost(error)
  }

  /// The broker has sent why it closes the connection.
  func failed(_ fault: Fault) {
    end(ClientError(fault))
  }

  /// Reports a protocol violation to the broker, and closes the connection.
  private func broken(_ error: WireError) {
    let isHandshake = isHandshake
    sendLast(error)
    switch error.code {
    case .versionMismatch: end(ClientError(Fault(error)))
    case _ where unsafe isHandshake && readBuffer.beginsLikeTLS: end(.secureServer(address))
    case _ where unsafe isHandshake && readBuffer.beginsLikeHTTP: end(.httpServer(address))
    case _ where isHandshake:
      end(
        ClientError(
          .notSluice, "\(address) answers, but not as a Sluice broker; check the address",
          brokerCode: error.code.rawValue))
    default: end(.violation(error, by: address))
    }
  }

  /// Sends ERROR immediately, as the last frame.
  private func sendLast(_ error: WireError) {
    output.send(Fault(error), stream: 0)
    _ = output.write(to: transport)
  }

  /// The transport has failed, or the broker has closed it.
  private func lost(_ error: IOError? = nil) {
    if let departure = streams.departure { return end(departure) }
    guard !isHandshake else {
      // With TLS 1.3 a client learns only here that its certificate is refused.
      if let error, error.isTLSFailure { return end(ClientError(tls: error)) }
      if decoder.pendingBytes >= 4, unsafe readBuffer.beginsLikeTLS {
        return end(.secureServer(address))
      }
      if decoder.pendingBytes >= 5, unsafe readBuffer.beginsLikeHTTP { return end(.httpServer(address)) }
      let how = error.map { "\($0)" } ?? "it closed the connection"
      return end(
        ClientError(
          .notSluice, "\(address) didn't finish the handshake (\(how)); is it a Sluice broker?"))
    }
    let how = error.map { "\($0)" } ?? "the broker at \(address) closed it"
    end(
      ClientError(
        .cutOff,
        "the connection was cut off\(decoder.pendingBytes > 0 ? " within a frame" : ""): \(how)"
          + (core.reconnects ? "" : "; connect again")))
  }

  private func end(_ error: ClientError) {
    guard let completion = handshakeCompletion else { return core.lost(self, error) }
    abort()
    completion(.failure(error))
  }

  /// Closes the transport without notifying the broker or the caller.
  func abort() {
    isClosed = true
    handshakeCompletion = nil
    transport.close()
  }

  /// Closes the connection. Called by the core, once.
  ///
  /// - Parameter error: why the client was closed; nil if another connection follows.
  /// - Returns: the owners of its streams, in the order of the streams' numbers.
  func detach(closing error: ClientError? = nil) -> [Attachment] {
    guard !isClosed else { return [] }
    if error?.code == .closed {
      // Earlier commits and records still go to the transport.
      streams.fillLastOutput()
      _ = output.write(to: transport)
    }
    isClosed = true
    transport.close()
    loop.cancel(&watchTimer)
    renewal?.end()
    renewal = nil
    return streams.removeAll()
  }
}
