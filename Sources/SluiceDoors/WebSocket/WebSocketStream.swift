import CLinux
import Glibc
import SluiceHTTP
import SluiceIO
import SluiceWebSocket

/// The bytes in a client's WebSocket messages over another stream, after the opening handshake.
///
/// Messages are read in place. Each write becomes one message of one frame, whose payload goes to the transport from where it is. Where messages
/// begin and end has no meaning in either direction. With a client that has agreed on compression, messages are inflated to where they are read, and written from
/// memory that all connections of the loop share.
///
/// On its loop only. Kept by the transport, as its handler, until it is closed or has failed.
final class WebSocketStream: ByteStream, ByteStreamHandler {
  /// The subprotocol of the native protocol, version 1.
  static let nativeProtocol = "sluice.1"
  /// That of MQTT, in all its versions.
  static let mqttProtocol = "mqtt"
  /// Vectors that one write passes on. One more, for a frame's head, is below the kernel's IOV_MAX.
  private static let maximumVectors = 1000
  /// Bytes of answers to control frames that may wait for the client to read before no more is read from it.
  private static let maximumControl = 4096
  /// Bytes that are read at a time where messages are compressed.
  private static let compressedRead = 16_384

  enum State {
    /// Before `start(_:)`.
    case idle
    /// The request's head is being read.
    case opening
    case open
    /// Closed here, or failed: what is left in the output is sent, nothing is read.
    case closing
    case gone
  }

  let peer: SocketAddress
  private let transport: any ByteStream
  private let loop: any EventLoop
  private let compression: WebSocketCompression.Table
  private var state = State.idle
  private var opening: WebSocketOpening
  private var inbox = WebSocketInbox()
  private var handler: (any ByteStreamHandler)?
  /// Called with the subprotocol when the handshake is done. Another handler may be started in it, which has the stream from then on.
  var opened: ((String) -> Void)?

  /// The client's end, to be told behind the bytes before it.
  private var ending: ReadResult?
  private var isEnded = false
  /// The handler is called in the next turn.
  private var comesRound = false

  private var outbox = WebSocketOutbox()
  /// A write came short and `streamWritable()` wasn't called since.
  private var waitsForRoom = false

  init(
    _ transport: any ByteStream, peer: SocketAddress, _ upgrade: WebSocketUpgrade,
    _ compression: WebSocketCompression.Table, on loop: any EventLoop
  ) {
    self.transport = transport
    self.peer = peer
    opening = WebSocketOpening(upgrade)
    self.compression = compression
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
        let shared = compression.find(loop)
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

  func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult {
    switch state {
    case .idle, .opening: return .wouldBlock
    case .closing, .gone: return .failed(IOError(action: "read from \(peer)", code: EBADF))
    case .open: break
    }
    if let ending {
      self.ending = nil
      if case .failed = ending { leave() }
      return ending
    }
    if isEnded { return .end }
    guard unsafe !buffer.isEmpty else { return .wouldBlock }
    if inbox.isCompressed { return unsafe readCompressed(into: buffer) }
    let count: Int
    if inbox.hasEarly {
      count = unsafe inbox.takeEarly(into: buffer)
      if inbox.hasEarly { comeRound() }
    } else {
      switch unsafe transport.read(into: buffer) {
      case .bytes(let read): count = read
      case let other: return transportEnded(other)
      }
    }
    var answers: [UInt8] = []
    let (read, end) = unsafe inbox.unpack(
      UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]), answers: &answers)
    return finish(read, end, answers)
  }

  private func readCompressed(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult {
    var answers: [UInt8] = []
    if inbox.hasEarly {
      let none = unsafe UnsafeMutableRawBufferPointer(start: nil, count: 0)
      let (read, end) = unsafe inbox.inflate(none, into: buffer, answers: &answers)
      if inbox.hasEarly, end == nil { comeRound() }
      return finish(read, end, answers)
    }
    // No more than the reader has room for: what is compressed seldom gets shorter.
    let size = min(buffer.count, Self.compressedRead)
    return unsafe withUnsafeTemporaryAllocation(byteCount: size, alignment: 16) { chunk in
      switch unsafe transport.read(into: chunk) {
      case .bytes(let count):
        let bytes = unsafe UnsafeMutableRawBufferPointer(rebasing: chunk[..<count])
        let (read, end) = unsafe inbox.inflate(bytes, into: buffer, answers: &answers)
        if inbox.hasEarly, end == nil { comeRound() }
        return finish(read, end, answers)
      case let other: return transportEnded(other)
      }
    }
  }

  /// The transport had nothing to read.
  private func transportEnded(_ result: ReadResult) -> ReadResult {
    switch result {
    case .end: isEnded = true
    case .failed:
      state = .gone
      release()
    case .wouldBlock, .bytes: break
    }
    return result
  }

  /// Answers what was read, and reports it.
  private func finish(_ count: Int, _ end: WebSocketEnding?, _ answers: [UInt8]) -> ReadResult {
    if !answers.isEmpty { outbox.append(control: answers) }
    if let end {
      isEnded = true
      updateTransport()
      sendOutput()
      let result = ReadResult(end, at: peer)
      guard count > 0 else {
        if case .failed = result { leave() }
        return result
      }
      ending = result
      comeRound()
      return .bytes(count)
    }
    if outbox.controlBytes > 0 { sendOutput() }
    return count > 0 ? .bytes(count) : .wouldBlock
  }

  var readsPaused = false {
    didSet {
      guard readsPaused != oldValue else { return }
      updateTransport()
      if !readsPaused, hasMore { comeRound() }
    }
  }

  /// Whether there is something to read that the transport won't report.
  private var hasMore: Bool { ending != nil || inbox.hasEarly }

  private func updateTransport() {
    let pauses =
      switch state {
      case .idle, .opening: false
      case .open: readsPaused || isEnded || outbox.controlBytes > Self.maximumControl
      case .closing, .gone: true
      }
    if transport.readsPaused != pauses { transport.readsPaused = pauses }
  }

  /// Has the handler called in the next turn.
  private func comeRound() {
    guard !comesRound else { return }
    comesRound = true
    _ = loop.schedule(at: loop.now) { [weak self] in
      self?.comesRound = false
      self?.handOut()
    }
  }

  private func handOut() {
    guard case .open = state, !readsPaused, hasMore else { return }
    handler?.streamReadable()
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
      // The transport has taken all that it was given, so it reports no room later.
      if count == total, count < all { comeRoundToWrite() }
      if !outbox.isWithinFrame, outbox.controlBytes > 0 { sendOutput() }
      return .wrote(count)
    }
  }

  private func comeRoundToWrite() {
    _ = loop.schedule(at: loop.now) { [weak self] in self?.streamWritable() }
  }

  /// Sends what stands before payloads, as far as the transport takes it.
  private func sendOutput() {
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
      // A client can't tell a Close frame from a payload that is cut off.
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

  /// The handshake has failed: the handler is told, the client gets the answer.
  private func fail(_ error: IOError) {
    let handler = handler
    leave()
    handler?.streamFailed(error)
  }

  /// Closes the transport when the output is out.
  private func leave() {
    state = .closing
    updateTransport()
    sendOutput()
    if outbox.isClear || outbox.isWithinFrame { return finishClosing() }
    release()
    // A client that takes nothing is left.
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

  /// Last in whatever calls it: the handler's end may call the stream.
  private func release() {
    let released = handler
    handler = nil
    _ = consume released
  }
}
