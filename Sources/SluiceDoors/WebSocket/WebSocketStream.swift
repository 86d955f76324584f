import CLinux
import Glibc
import SluiceHTTP
import SluiceIO
import SluiceWebSocket

/// The bytes in a client's WebSocket messages over another stream, after the opening handshake.
///
/// Messages are read in place. Each write becomes one message of one frame, whose payload goes to the transport without a copy. Message boundaries have no
/// meaning in either direction. If compression was agreed on, messages are inflated into the reader's buffer, and written from memory that all connections of
/// the loop share.
///
/// On its loop only. The transport retains the stream as its handler until it is closed or has failed.
final class WebSocketStream: ByteStream, ByteStreamHandler {
  /// The subprotocol of the native protocol, version 1.
  static let nativeProtocol = "sluice.1"
  /// The subprotocol of MQTT, for all its versions.
  static let mqttProtocol = "mqtt"
  /// The most vectors in one write; with one more for a frame's head it stays below the kernel's IOV_MAX.
  private static let maximumVectors = 1000
  /// The stream stops reading while more bytes of answers to control frames than this wait for the client.
  private static let maximumControl = 4096

  enum State {
    /// Before `start(_:)`.
    case idle
    /// The request's head is being read.
    case opening
    case open
    /// Closed here, or failed: the remaining output is sent, and nothing is read.
    case closing
    case gone
  }

  let peer: SocketAddress
  let transport: any ByteStream
  let loop: any EventLoop
  var state = State.idle
  private var opening: WebSocketOpening
  var inbox = WebSocketInbox()
  var handler: (any ByteStreamHandler)?
  /// Called with the subprotocol once the handshake is done. The callback may start another handler, which then replaces this one.
  var opened: ((String) -> Void)?

  /// The end of the client's side, reported after the bytes before it.
  var ending: ReadResult?
  var isEnded = false
  /// Whether a call of the handler in the next turn is scheduled.
  var comesRound = false

  var outbox = WebSocketOutbox()
  /// A write was incomplete, and `streamWritable()` wasn't called since.
  private var waitsForRoom = false

  init(
    _ transport: any ByteStream, peer: SocketAddress, _ door: WebSocketDoor, on loop: any EventLoop
  ) {
    self.transport = transport
    self.peer = peer
    opening = WebSocketOpening(door)
    self.loop = loop
  }

  var security: StreamSecurity? { transport.security }

  var obstacle: StreamObstacle? { transport.obstacle }

  var heldBytes: Int {
    inbox.heldBytes + outbox.heldBytes + opening.heldBytes + transport.heldBytes
  }

  func start(_ handler: any ByteStreamHandler) {
    switch state {
    case .idle:
      self.handler = handler
      state = .opening
      transport.start(self)
    case .open: self.handler = handler
    case .opening, .closing, .gone: break
    }
  }

  // MARK: The handshake

  private func shakeHands() {
    unsafe withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 16) { buffer in
      switch unsafe transport.read(into: buffer) {
      case .wouldBlock: break
      case .end:
        fail(
          IOError(
            action: openingAction, code: ECONNRESET,
            reason: "the client closed the connection before its request was complete"))
      case .failed(let error): fail(error)
      case .bytes(let count):
        unsafe take(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      }
    }
  }

  private func take(_ bytes: UnsafeRawBufferPointer) {
    switch unsafe opening.take(bytes) {
    case .agreed(let agreement, let early):
      if let terms = agreement.compression {
        let shared = opening.door.compression.find(loop) { WebSocketCompression() }
        inbox = WebSocketInbox(shared.inflaters)
        outbox = WebSocketOutbox(shared.packer(terms))
      }
      inbox.append(early: early)
      outbox.append(answer: agreement.answer)
      state = .open
      opened.take()?(agreement.subprotocol)
      begin()
    case .refused(let refusal):
      outbox.append(answer: refusal.answer(at: loop.wallClock))
      fail(IOError(action: openingAction, fault: .violation, reason: refusal.message))
    case nil: break
    }
  }

  private var openingAction: String { "open a WebSocket for \(peer)" }

  private func begin() {
    updateTransport()
    sendOutput()
    if case .open = state, waitsForRoom, outbox.isClear {
      waitsForRoom = false
      handler?.streamWritable()
    }
    if inbox.hasEarly { handOut() }
  }

  // MARK: Reading

  var readsPaused = false {
    didSet {
      guard readsPaused != oldValue else { return }
      updateTransport()
      if !readsPaused, hasMore { comeRound() }
    }
  }

  func updateTransport() {
    let pauses =
      switch state {
      case .idle, .opening: false
      case .open: readsPaused || isEnded || outbox.controlBytes > Self.maximumControl
      case .closing, .gone: true
      }
    if transport.readsPaused != pauses { transport.readsPaused = pauses }
  }

  // MARK: Writing

  func write(_ vectors: UnsafeBufferPointer<iovec>) -> WriteResult {
    switch state {
    case .idle, .opening:
      waitsForRoom = true
      return .wrote(0)
    case .closing, .gone: return .failed(IOError(action: "write to \(peer)", code: EPIPE))
    case .open: break
    }
    sendOutput()
    guard case .open = state else { return .failed(IOError(action: "write to \(peer)", code: EPIPE)) }
    let offered = unsafe UnsafeBufferPointer(rebasing: vectors.prefix(Self.maximumVectors))
    var all = 0
    for index in vectors.indices { all += unsafe vectors[index].iov_len }
    guard outbox.isClear, all > 0 else {
      if all > 0 { waitsForRoom = true }
      return .wrote(0)
    }
    var total = 0
    for index in offered.indices { total += unsafe offered[index].iov_len }
    switch unsafe outbox.write(offered, total: total, to: transport) {
    case .failed(let error):
      state = .gone
      release()
      return .failed(error)
    case .wrote(let count):
      if count < all { waitsForRoom = true }
      // The transport took all bytes, so it won't report that it is writable.
      if count < all, count == total || outbox.isCutShort { comeRoundToWrite() }
      if !outbox.isWithinFrame, outbox.controlBytes > 0 { sendOutput() }
      return .wrote(count)
    }
  }

  private func comeRoundToWrite() {
    _ = loop.schedule(at: loop.now) { [weak self] in self?.streamWritable() }
  }

  /// Sends the bytes before payloads, as far as the transport takes them.
  func sendOutput() {
    if let error = outbox.flush(to: transport) { return transportFailed(error) }
    if outbox.isClear { updateTransport() }
  }

  // MARK: What the transport reports

  func streamReadable() {
    switch state {
    case .opening: shakeHands()
    case .open: handler?.streamReadable()
    case .idle, .closing, .gone: break
    }
  }

  func streamWritable() {
    sendOutput()
    guard outbox.isClear else { return }
    switch state {
    case .open:
      guard waitsForRoom else { return }
      waitsForRoom = false
      handler?.streamWritable()
    case .closing: finishClosing()
    case .idle, .opening, .gone: break
    }
  }

  func streamHoldsOther() { handler?.streamHoldsOther() }

  func streamFailed(_ error: IOError) { transportFailed(error) }

  private func transportFailed(_ error: IOError) {
    guard state != .gone else { return }
    state = .gone
    let handler = handler
    release()
    handler?.streamFailed(error)
  }

  // MARK: The end

  func close() {
    switch state {
    case .closing, .gone: return
    case .idle, .opening:
      outbox.append(
        answer: WebSocketUpgrade.Refusal.timeout.answer(at: loop.wallClock))
    case .open:
      // The client would read a Close frame within an incomplete payload as part of the payload.
      if !outbox.isWithinFrame { outbox.append(control: inbox.close()) }
    }
    leave()
  }

  func abort() {
    guard state != .gone else { return }
    transport.abort()
    state = .gone
    release()
  }

  /// The handshake has failed: notifies the handler, and sends the answer to the client.
  private func fail(_ error: IOError) {
    let handler = handler
    leave()
    handler?.streamFailed(error)
  }

  /// Closes the transport once the output is sent.
  func leave() {
    state = .closing
    updateTransport()
    sendOutput()
    if outbox.isClear || outbox.isWithinFrame { return finishClosing() }
    release()
    // Gives up on a client that doesn't read.
    _ = loop.schedule(after: .seconds(5)) { [weak self] in
      guard let self, case .closing = state else { return }
      abort()
    }
  }

  private func finishClosing() {
    guard state != .gone else { return }
    state = .gone
    transport.close()
    release()
  }

  /// Must be the caller's last step: the end of the handler may call the stream.
  func release() {
    let released = handler
    handler = nil
    _ = consume released
  }
}
