import ReactiveCore
import SluiceIO
import SluiceSession
import SluiceTLS
import SluiceWire

/// One connection to a broker: bytes in, frames, the session's actions; commands in, frames out.
///
/// The shell around ``ClientSession``, which decides. Kept by its stream until that is closed. On the loop only. What it does for
/// subscribers and producers is in `Connection+Streams`.
@safe
final class Connection: ByteStreamHandler {
  typealias HandshakeCompletion = (Result<Welcome, ClientError>) -> Void

  /// Reading starts with the first size; a buffer that was filled grows up to the second.
  private static let readSizes = (least: 16 << 10, most: 512 << 10)
  /// With so much waiting for the transport, nothing more is taken from publications.
  static let outputLimit = 256 << 10

  let core: ClientCore
  private let stream: any ByteStream
  private var handshakeCompletion: HandshakeCompletion?
  private var isClosed = false

  var session = ClientSession()
  private var decoder = FrameDecoder(maximumFrame: Limits.handshakeFrame, openingAt: .client)
  private var readBuffer: UnsafeMutableRawBufferPointer
  /// Of records that nobody keeps.
  var lastBuffer: RecordBuffer?
  var output = OutputBuffer()
  /// The transport has taken only a part of it.
  private var outputWaits = false

  /// By stream number less one.
  private(set) var handles: [Attachment?] = []
  /// Subscriptions that have perhaps more to grant.
  var dueSubscriptions: [RemoteSubscription] = []
  /// Subscriptions whose topics have ended, and whose subscribers may still commit what they got.
  var lateCommits: [RemoteSubscription] = []
  /// Publications that have perhaps something to send.
  var duePublications: [Publication] = []
  /// By token.
  var pings: [UInt64: (sent: MonotonicTime, request: Request)] = [:]

  /// What the broker agreed to; known after the handshake.
  private(set) var welcome: Welcome?
  /// Why the broker is about to close.
  private(set) var departure: ClientError?
  private var watchTimer: TimerToken?
  /// What HELLO said, up to the handshake's end.
  private var credentials: Credentials
  private(set) var renewal: CredentialsRenewal?

  /// Says HELLO. `completion` is called once, with the broker's answer or with why there is none.
  init(
    stream: any ByteStream, core: ClientCore, credentials: Credentials,
    completion: @escaping HandshakeCompletion
  ) {
    self.stream = stream
    self.core = core
    self.credentials = credentials
    handshakeCompletion = completion
    unsafe readBuffer = .allocate(byteCount: Self.readSizes.least, alignment: 16)
    let options = core.options
    output.append(
      Hello(
        versions: Limits.versions,
        maximumFrame: UInt32(clamping: max(options.maximumFrame, Limits.smallestFrame)),
        keepalive: options.keepaliveMilliseconds,
        name: options.cutName, credentials: credentials),
      stream: 0)
    stream.start(self)
    flush()
  }

  deinit {
    unsafe readBuffer.deallocate()
  }

  var loop: any EventLoop { core.loop }

  // MARK: Bytes in

  func streamReadable() {
    switch unsafe stream.read(into: readBuffer) {
    case .wouldBlock: return
    case .end: return lost()
    case .failed(let error): return lost(error)
    case .bytes(let count): take(count)
    }
  }

  private func take(_ count: Int) {
    let now = loop.now.nanoseconds
    session.heard(at: now)
    do {
      try unsafe decoder.decode(UnsafeRawBufferPointer(rebasing: readBuffer[..<count])) {
        header, body throws(WireError) in
        try unsafe perform(try session.receive(header, body, at: now))
        return !isClosed
      }
    } catch {
      broken(error)
    }
    if isClosed { return }
    // Not changed while the decoder is at work. Nothing long comes in one read with WELCOME, since nothing was asked for.
    if session.phase != .handshake {
      decoder.maximumFrame = max(core.options.maximumFrame, Limits.smallestFrame)
    }
    if unsafe count == readBuffer.count, count < Self.readSizes.most { growReadBuffer() }
  }

  private func growReadBuffer() {
    let size = unsafe min(readBuffer.count * 4, Self.readSizes.most)
    unsafe readBuffer.deallocate()
    unsafe readBuffer = .allocate(byteCount: size, alignment: 16)
  }

  // MARK: Bytes out

  func streamWritable() {
    // Not by way of the core, which doesn't know this connection before the handshake is over.
    flush()
  }

  /// Puts a frame behind those that wait; it is written at the end of this turn.
  func send(_ frame: some Frame, stream: UInt32) {
    output.append(frame, stream: stream)
    core.flushSoon()
  }

  /// Sends grants, and what was published, as far as the transport takes it. Called at the end of a turn.
  func flush() {
    if isClosed { return }
    sendGrants()
    servePublications()
    let waiting = output.count
    if let error = output.write(to: stream) { return lost(error) }
    // What came short found room again, so the broker reads. It may have nothing to say meanwhile, and a PING stands behind all that
    // waits, which a slow line may take longer for than the broker may be silent.
    if outputWaits, output.count < waiting { session.heard(at: loop.now.nanoseconds) }
    outputWaits = output.count > 0
    // A transport that is full will say when it isn't; otherwise it is the others' turn first.
    if output.count == 0, !duePublications.isEmpty { core.flushSoon() }
  }

  // MARK: Streams

  func handle(_ stream: UInt32) -> Attachment? {
    let index = Int(stream) - 1
    return handles.indices.contains(index) ? handles[index] : nil
  }

  func setHandle(_ stream: UInt32, _ handle: Attachment) {
    let index = Int(stream) - 1
    while handles.count <= index { handles.append(nil) }
    handles[index] = handle
  }

  /// What the stream belonged to; it belongs to nobody now.
  func takeHandle(_ stream: UInt32) -> Attachment? {
    guard let taken = handle(stream) else { return nil }
    handles[Int(stream) - 1] = nil
    return taken
  }

  // MARK: The connection itself

  func opened(_ welcome: Welcome) {
    self.welcome = welcome
    watch()
    let identity = ClientIdentity(name: welcome.identity, expires: welcome.expires)
    renewal = CredentialsRenewal(credentials, of: self, expires: identity?.expires)
    credentials = .none
    let completion = handshakeCompletion
    handshakeCompletion = nil
    completion?(.success(welcome))
  }

  func leaving(_ frame: GoAway) {
    departure = ClientError(Fault(code: frame.code, message: frame.message))
  }

  private func watch() {
    watchTimer = nil
    if isClosed { return }
    let time: UInt64
    switch session.watch(at: loop.now.nanoseconds) {
    case .sleep(let until): time = until
    case .ping(let token, let next):
      send(Ping(token: token), stream: 0)
      time = next
    case .expired:
      let silence = Duration.milliseconds(Int(welcome?.keepalive ?? 0))
      // In case that only the broker's side of the line is dead.
      tell(WireError(.keepaliveTimeout, "nothing was heard from the broker for \(silence)"))
      return core.lost(
        ClientError(
          .keepaliveTimeout,
          "nothing was heard from the broker at \(core.address) for \(silence); it hangs, or the network is gone"
        ))
    }
    guard time != .max else { return }
    watchTimer = loop.schedule(at: MonotonicTime(nanoseconds: time)) { [weak self] in self?.watch() }
  }

  // MARK: The end

  func streamFailed(_ error: IOError) {
    lost(error)
  }

  /// The broker says why it closes.
  func failed(_ fault: Fault) {
    end(ClientError(fault))
  }

  /// The broker broke the protocol: tells it, and closes.
  private func broken(_ error: WireError) {
    let isHandshake = session.phase == .handshake
    tell(error)
    switch error.code {
    case .versionMismatch: end(ClientError(Fault(error)))
    case _ where unsafe isHandshake && readBuffer.beginsLikeTLS: end(.secureServer(core.address))
    case _ where isHandshake:
      end(ClientError(.notSluice, "\(core.address) answers, but not as a Sluice broker; check the address"))
    default: end(.violation(error, by: core.address))
    }
  }

  /// Sends the broker a last word.
  private func tell(_ error: WireError) {
    output.append(Fault(error), stream: 0)
    _ = output.write(to: stream)
  }

  /// The bytes have come to an end.
  private func lost(_ error: IOError? = nil) {
    if let departure { return end(departure) }
    guard session.phase != .handshake else {
      // With TLS 1.3 a client hears only here that its certificate is refused.
      if let error, error.isTLSFailure { return end(ClientError(tls: error)) }
      if decoder.pendingBytes >= 4, unsafe readBuffer.beginsLikeTLS {
        return end(.secureServer(core.address))
      }
      let how = error.map { "\($0)" } ?? "it closed the connection"
      return end(
        ClientError(
          .notSluice, "\(core.address) didn't finish the handshake (\(how)); is it a Sluice broker?"))
    }
    let how = error.map { "\($0)" } ?? "the broker at \(core.address) closed it"
    end(
      ClientError(
        .cutOff,
        "the connection was cut off\(decoder.pendingBytes > 0 ? " within a frame" : ""): \(how)"
          + (core.reconnects ? "" : "; connect again")))
  }

  private func end(_ error: ClientError) {
    guard let completion = handshakeCompletion else { return core.lost(error) }
    abort()
    completion(.failure(error))
  }

  /// Closes without a word to anybody.
  func abort() {
    isClosed = true
    handshakeCompletion = nil
    stream.close()
  }

  /// Closes. Called by the core, once.
  ///
  /// - Parameter error: why everything ends; nil when it goes on elsewhere.
  /// - Returns: whom it had on its streams, in the order of their numbers.
  func detach(saying error: ClientError? = nil) -> [Attachment] {
    guard !isClosed else { return [] }
    if error?.code == .closed {
      // What was done and sent before is still given to the transport.
      sendLastCommits()
      servePublications()
      _ = output.write(to: stream)
    }
    isClosed = true
    stream.close()
    if let watchTimer { loop.cancel(watchTimer) }
    renewal?.end()
    renewal = nil
    let handles = exchange(&handles, for: [])
    let pings = exchange(&pings, for: [:])
    for bridge in dueSubscriptions { bridge.isDue = false }
    for publication in duePublications { publication.isDue = false }
    for bridge in lateCommits { bridge.commitLate(on: 0) }
    dueSubscriptions = []
    lateCommits = []
    duePublications = []
    lastBuffer = nil
    output.removeAll()
    return handles.compactMap { $0 }
      + pings.keys.sorted().compactMap { pings[$0].map { .request($0.request) } }
  }
}

func exchange<Value>(_ place: inout Value, for new: consuming Value) -> Value {
  swap(&place, &new)
  return new
}
