import CLinux
import Glibc
import SluiceIO
import SluiceWebSocket

/// The bytes in a client's WebSocket messages over another stream, after the opening handshake.
///
/// Messages are read in place. Each write becomes one message of one frame, whose payload goes to the transport from where it is. Where messages
/// begin and end has no meaning in either direction.
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
  private let upgrade: WebSocketUpgrade
  private var state = State.idle
  private var head = HTTPHeadReader()
  private var session: WebSocketSession
  private var handler: (any ByteStreamHandler)?
  /// Called with the subprotocol when the handshake is done. Another handler may be started in it, which has the stream from then on.
  var opened: ((String) -> Void)?

  /// Bytes of messages that came with the request, and aren't read yet.
  private var early: [UInt8] = []
  /// The client's end, to be told behind the bytes before it.
  private var ending: ReadResult?
  private var isEnded = false

  /// What goes to the transport before anything else: the handshake's answer, or the rest of a frame's head.
  private var output: [UInt8] = []
  /// Control frames that wait for the end of the frame under way.
  private var control: [UInt8] = []
  /// Bytes of payload that the frame under way still needs.
  private var missing = 0
  /// A write came short and `streamWritable()` wasn't called since.
  private var waitsForRoom = false

  init(
    _ transport: any ByteStream, peer: SocketAddress, _ upgrade: WebSocketUpgrade, on loop: any EventLoop
  ) {
    self.transport = transport
    self.peer = peer
    self.upgrade = upgrade
    self.loop = loop
    // Nothing of a message is held here, and the native protocol has limits of its own. It has PING, too.
    let limits = WebSocketDecoder.Limits(frame: .max >> 1, message: .max >> 1)
    session = WebSocketSession(
      .server, WebSocketSession.Rules(limits: limits, takesText: false, pingAfter: 0), now: 0)
  }

  var security: StreamSecurity? { transport.security }

  var obstacle: StreamObstacle? { transport.obstacle }

  var heldBytes: Int {
    early.count + output.count + control.count + head.heldBytes + session.heldBytes + transport.heldBytes
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
      case .end: fail(refusal("the client closed the connection before its request was complete"))
      case .failed(let error): fail(error)
      case .bytes(let count):
        unsafe take(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      }
    }
  }

  private func take(_ bytes: UnsafeRawBufferPointer) {
    do {
      guard let (request, taken) = try unsafe head.take(bytes) else { return }
      let agreement = try upgrade.answer(request)
      unsafe early += bytes[taken...]
      head = HTTPHeadReader()
      output += agreement.answer
      state = .open
      opened.take()?(agreement.subprotocol)
      begin()
    } catch let fault as HTTPRequestHead.Fault {
      refuse(WebSocketUpgrade.Refusal(fault))
    } catch let refusal as WebSocketUpgrade.Refusal {
      refuse(refusal)
    } catch {
      fail(refusal("\(error)"))
    }
  }

  private func refuse(_ refusal: WebSocketUpgrade.Refusal) {
    output += refusal.answer
    fail(self.refusal(refusal.message))
  }

  private func refusal(_ reason: String) -> IOError {
    IOError(action: "open a WebSocket for \(peer)", code: EPROTO, reason: reason)
  }

  private func begin() {
    updateTransport()
    sendOutput()
    if case .open = state, waitsForRoom, output.isEmpty {
      waitsForRoom = false
      handler?.streamWritable()
    }
    if !early.isEmpty { handOut() }
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
    let count: Int
    if early.isEmpty {
      switch unsafe transport.read(into: buffer) {
      case .bytes(let read): count = read
      case .wouldBlock: return .wouldBlock
      case .end:
        isEnded = true
        return .end
      case .failed(let error):
        state = .gone
        release()
        return .failed(error)
      }
    } else {
      count = min(early.count, buffer.count)
      unsafe buffer.copyBytes(from: early[..<count])
      early.removeFirst(count)
      if !early.isEmpty { comeRound() }
    }
    return unsafe unpack(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
  }

  /// Moves the payloads of messages to the front of the memory that they came in.
  private func unpack(_ bytes: UnsafeMutableRawBufferPointer) -> ReadResult {
    guard let base = bytes.baseAddress else { return .wouldBlock }
    var count = 0
    var end: WebSocketEnding?
    var answers: [UInt8] = []
    unsafe session.receive(bytes, now: 0, output: &answers) { action in
      switch action {
      case .part(_, let part, _, _):
        guard let start = part.baseAddress else { return }
        // A payload never stands before what was moved to the front.
        unsafe memmove(base + count, start, part.count)
        count += part.count
      case .end(let ending): end = ending
      }
    }
    control += answers
    if let end {
      isEnded = true
      updateTransport()
      sendOutput()
      let result = result(of: end)
      guard count > 0 else {
        if case .failed = result { leave() }
        return result
      }
      ending = result
      comeRound()
      return .bytes(count)
    }
    if !control.isEmpty { sendOutput() }
    return count > 0 ? .bytes(count) : .wouldBlock
  }

  private func result(of ending: WebSocketEnding) -> ReadResult {
    switch ending.code {
    case .normal, .goingAway, .noStatus: .end
    default:
      .failed(
        IOError(
          action: "read from \(peer)", code: EPROTO,
          reason: "the WebSocket was closed with \(ending.code): \(ending.reason)"))
    }
  }

  var readsPaused = false {
    didSet {
      guard readsPaused != oldValue else { return }
      updateTransport()
      if !readsPaused, hasMore { comeRound() }
    }
  }

  /// Whether there is something to read that the transport won't report.
  private var hasMore: Bool { ending != nil || !early.isEmpty }

  private func updateTransport() {
    let pauses =
      switch state {
      case .idle, .opening: false
      case .open: readsPaused || isEnded || control.count > Self.maximumControl
      case .closing, .gone: true
      }
    if transport.readsPaused != pauses { transport.readsPaused = pauses }
  }

  /// Has the handler called in the next turn.
  private func comeRound() {
    _ = loop.schedule(at: loop.now) { [weak self] in self?.handOut() }
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
    guard output.isEmpty, all > 0 else {
      if all > 0 { waitsForRoom = true }
      return .wrote(0)
    }
    var total = 0
    for index in offered.indices { total += unsafe offered[index].iov_len }
    switch unsafe writeFrame(offered, total) {
    case .failed(let error):
      state = .gone
      release()
      return .failed(error)
    case .wrote(let count):
      if count < all { waitsForRoom = true }
      // The transport has taken all that it was given, so it reports no room later.
      if count == total, count < all { comeRoundToWrite() }
      if missing == 0, !control.isEmpty { sendOutput() }
      return .wrote(count)
    }
  }

  private func comeRoundToWrite() {
    _ = loop.schedule(at: loop.now) { [weak self] in self?.streamWritable() }
  }

  /// Writes what completes the frame under way, and a new frame with the rest.
  private func writeFrame(_ vectors: UnsafeBufferPointer<iovec>, _ total: Int) -> WriteResult {
    let first = min(missing, total)
    let second = total - first
    var front: [UInt8] = []
    if second > 0 { WebSocketEncoder.appendHead(.binary, length: second, to: &front) }
    let result = unsafe front.withUnsafeMutableBytes { front in
      unsafe withUnsafeTemporaryAllocation(of: iovec.self, capacity: vectors.count + 2) { pieces in
        var count = 0
        var ahead = first
        var hasHead = unsafe front.isEmpty
        func add(_ base: UnsafeMutableRawPointer?, _ length: Int) {
          guard length > 0 else { return }
          unsafe pieces[count] = unsafe iovec(iov_base: base, iov_len: length)
          count += 1
        }
        for index in vectors.indices {
          let vector = unsafe vectors[index]
          let before = unsafe min(ahead, vector.iov_len)
          unsafe add(vector.iov_base, before)
          ahead -= before
          guard unsafe before < vector.iov_len else { continue }
          if !hasHead {
            unsafe add(front.baseAddress, front.count)
            hasHead = true
          }
          unsafe add(vector.iov_base + before, vector.iov_len - before)
        }
        return unsafe transport.write(UnsafeBufferPointer(start: pieces.baseAddress, count: count))
      }
    }
    guard case .wrote(let sent) = result else { return result }
    guard sent > first else {
      missing -= min(sent, first)
      return .wrote(sent)
    }
    // The frame's head is out, at least in part: its payload must follow.
    let ofHead = min(sent - first, front.count)
    let ofPayload = sent - first - ofHead
    output += front[ofHead...]
    missing = second - ofPayload
    return .wrote(first + ofPayload)
  }

  /// Sends what stands before payloads, as far as the transport takes it.
  private func sendOutput() {
    while true {
      if output.isEmpty, missing == 0, !control.isEmpty { swap(&output, &control) }
      guard !output.isEmpty else { break }
      switch unsafe output.withUnsafeBytes({ unsafe transport.write($0) }) {
      case .wrote(let count):
        output.removeFirst(count)
        if !output.isEmpty { return }
      case .failed(let error): return transportFailed(error)
      }
    }
    updateTransport()
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
    guard output.isEmpty else { return }
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
      output += Array("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".utf8)
    case .open:
      // A client can't tell a Close frame from a payload that is cut off.
      if missing == 0 { session.close(.normal, now: 0, output: &control) }
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
    if output.isEmpty || missing > 0 { return finishClosing() }
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
