import CLinux
import COpenSSL
import Glibc
import SluiceIO

/// Bytes over TLS over another stream.
///
/// Decrypted bytes in OpenSSL are delivered like bytes in the transport: once per turn while there are some. Written bytes are gathered
/// into full records, and records into few writes; at most ``TLSLoop/blockSize`` of ciphertext and a record wait for room in the
/// transport.
///
/// On its loop only. Kept by the transport, as its handler, until it is closed or has failed.
final class TLSStream: ByteStream, ByteStreamHandler {
  enum State {
    /// For a server, before `start(_:)`.
    case idle
    case handshaking
    case open
    /// A write has failed, and the handler knows. Bytes that had arrived before can still be read.
    case writeFailed
    /// Closed here; what was written is being sent, what arrives is thrown away.
    case closing
    /// Failed or closed: nothing is left.
    case gone
  }

  typealias HandshakeCompletion = (Result<TLSStream, IOError>) -> Void

  let peer: SocketAddress
  let transport: any ByteStream
  let shared: TLSLoop
  private let side: TLSSide
  var state = State.idle
  var engine: TLSEngine?
  var handler: (any ByteStreamHandler)?
  var completion: HandshakeCompletion?
  private(set) var security: StreamSecurity?

  private var reading = TLSReading()
  /// A write came short and `streamWritable()` wasn't called since.
  private var waitsForRoom = false

  /// For ``TLSLoop``: stands on its list; was called in this turn.
  var isWaiting = false
  var wasServed = false

  init(_ transport: any ByteStream, peer: SocketAddress, side: TLSSide, shared: TLSLoop) {
    self.transport = transport
    self.peer = peer
    self.side = side
    self.shared = shared
  }

  /// How much ciphertext waits for room in the transport.
  var unsentCount: Int { engine?.unsentCount ?? 0 }

  var heldBytes: Int { transport.heldBytes + (engine?.heldBytes ?? 0) }

  var obstacle: StreamObstacle? { transport.obstacle }

  /// Whether the handshake was cut short by what the client had kept of an earlier one.
  private(set) var isResumed = false

  // MARK: The handshake

  /// For a client: starts the handshake. The completion is called once, unless ``abort()`` is called before.
  func connect(_ completion: @escaping HandshakeCompletion) {
    self.completion = completion
    state = .handshaking
    engine = side.makeEngine(transport, shared)
    transport.start(self)
    shakeHands()
  }

  func start(_ handler: any ByteStreamHandler) {
    precondition(shared.loop.isCurrent, "a stream is used on its loop")
    precondition(self.handler == nil, "a stream is started once")
    switch state {
    case .idle:
      self.handler = handler
      state = .handshaking
      engine = side.makeEngine(transport, shared)
      transport.start(self)
    case .open:
      self.handler = handler
      settle()
    case .handshaking, .writeFailed, .closing, .gone: break
    }
  }

  private func shakeHands() {
    guard let engine else { return }
    var outcome = engine.handshake()
    engine.flush()
    if engine.writeFailure != nil, case .needsInput = outcome {
      // The peer may have said why before it closed.
      outcome = engine.handshake()
      if case .needsInput = outcome, let error = engine.writeFailure { outcome = .failed(TLSFault(error)) }
    }
    switch outcome {
    case .needsInput: updateTransport()
    case .done: established(engine)
    case .ended: refuse(TLSFault(.truncated, ""))
    case .failed(let fault): refuse(fault)
    }
  }

  private func established(_ engine: TLSEngine) {
    switch side.security(of: engine, at: shared.loop.wallClock) {
    case .success(let security): self.security = security
    case .failure(let fault): return refuse(fault)
    }
    isResumed = engine.isResumed
    state = .open
    if let completion {
      self.completion = nil
      updateTransport()
      return completion(.success(self))
    }
    updateTransport()
    if waitsForRoom, engine.isClear {
      waitsForRoom = false
      handler?.streamWritable()
    }
    // The client's first words may have come with the end of its handshake.
    handOut()
    wasServed = true
    settle()
  }

  /// The handshake has failed.
  private func refuse(_ fault: TLSFault) {
    if case .notTLS = fault.kind, side.isServer { sayWeSpeakTLS() }
    let error = fault.error(side.action(peer), inHandshake: true)
    side.refused(peer, error)
    fail(error)
  }

  /// Sends a plaintext protocol_version alert to a client that doesn't speak TLS, since OpenSSL sends none.
  private func sayWeSpeakTLS() {
    // An alert: fatal, protocol version.
    let alert: [UInt8] = [0x15, 3, 1, 0, 2, 2, 70]
    _ = unsafe alert.withUnsafeBytes { unsafe transport.write($0) }
  }

  // MARK: Reading

  func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult {
    precondition(shared.loop.isCurrent, "a stream is used on its loop")
    switch state {
    case .idle, .handshaking: return .wouldBlock
    case .closing, .gone: return .failed(IOError(action: "read from \(peer)", code: EBADF))
    case .open, .writeFailed: break
    }
    if reading.hasEnded { return .end }
    guard unsafe !buffer.isEmpty, let engine else { return .wouldBlock }
    let result = unsafe reading.read(engine, into: buffer, from: peer)
    switch result {
    case .bytes, .wouldBlock: settle()
    case .end: updateTransport()
    case .failed: end()
    }
    return result
  }

  var readsPaused = false {
    didSet {
      if readsPaused != oldValue { settle() }
    }
  }

  /// Whether there is something to hand out that the transport won't report.
  private var hasMore: Bool { engine.map(reading.hasMore) ?? false }

  /// Makes sure that remaining bytes are reported.
  private func settle() {
    guard case .open = state else { return }
    updateTransport()
    if handler != nil, !readsPaused || engine?.failure != nil, hasMore { shared.comeRound(self) }
  }

  /// The transport is read as long as the handler takes what comes.
  func updateTransport() {
    let pauses =
      switch state {
      case .idle, .closing: false
      case .handshaking: engine?.holdsBack ?? false
      case .open: readsPaused || reading.hasEnded || handler == nil || engine?.holdsBack ?? false
      case .writeFailed, .gone: true
      }
    if transport.readsPaused != pauses { transport.readsPaused = pauses }
  }

  private func handOut() {
    guard case .open = state, !readsPaused, !reading.hasEnded, hasMore, let handler else { return }
    handler.streamReadable()
    settle()
  }

  /// A turn later: there is something left.
  func comeRound() {
    guard case .open = state else { return }
    // A handler that doesn't read learns of it at once.
    if readsPaused, let error = engine?.failure { return fail(error) }
    handOut()
  }

  // MARK: Writing

  func write(_ vectors: UnsafeBufferPointer<iovec>) -> WriteResult {
    precondition(shared.loop.isCurrent, "a stream is used on its loop")
    switch state {
    case .open: break
    case .idle, .handshaking:
      if unsafe vectors.contains(where: { unsafe $0.iov_len > 0 }) { waitsForRoom = true }
      return .wrote(0)
    case .writeFailed, .closing, .gone: return .failed(IOError(action: "write to \(peer)", code: EPIPE))
    }
    guard let engine else { return .wrote(0) }
    var pieces = unsafe RecordPieces(vectors, staging: shared.staging)
    var taken = 0
    while engine.isClear, let piece = unsafe pieces.next() {
      if let fault = unsafe engine.write(piece) {
        engine.flush()
        return .failed(loseWriting(fault.error("write to \(peer)", inHandshake: false)))
      }
      taken += piece.count
      engine.flushIfFull()
    }
    engine.flush()
    if let error = engine.writeFailure { return .failed(loseWriting(error)) }
    if !pieces.isAtEnd { waitsForRoom = true }
    return .wrote(taken)
  }

  // MARK: What the transport reports

  func streamReadable() {
    switch state {
    case .handshaking: shakeHands()
    case .open:
      guard !readsPaused, !reading.hasEnded, let handler else { return updateTransport() }
      reading.transportHasMore()
      handler.streamReadable()
      wasServed = true
      settle()
    case .closing: throwAwayInput()
    case .idle, .writeFailed, .gone: break
    }
  }

  func streamWritable() {
    guard let engine else { return }
    engine.sendUnsent()
    if let error = engine.writeFailure {
      if case .closing = state { return leave() }
      return fail(error)
    }
    guard engine.isClear else {
      handler?.streamHoldsOther()
      return
    }
    switch state {
    case .closing: finishClosing()
    case .open:
      updateTransport()
      guard waitsForRoom else {
        handler?.streamHoldsOther()
        return
      }
      waitsForRoom = false
      handler?.streamWritable()
    case .handshaking: updateTransport()
    case .idle, .writeFailed, .gone: break
    }
  }

  func streamHoldsOther() {
    handler?.streamHoldsOther()
  }

  func streamFailed(_ error: IOError) {
    switch state {
    case .handshaking:
      fail(error)
    case .open:
      guard let engine, handler != nil, !readsPaused, hasMore else { return fail(error) }
      // Bytes that arrived before are delivered first.
      engine.transportFailed(error)
      settle()
    case .closing: leave()
    case .idle, .writeFailed, .gone: break
    }
  }
}
