import Glibc
import SluiceCommand
import SluiceIO
import SluiceSession
import SluiceWebSocket
import SluiceWire

/// A connection of a client of HTTP/1.1: one request after the other on one side, a client of the native protocol on the other.
///
/// What requests there are is in ``HTTPRoute``.
///
/// The connection belongs to the identity of its first request. What the client doesn't read isn't taken from the broker.
///
/// On its loop only.
final class HTTPConnection: ByteStreamHandler, DoorLinkClient {
  private enum Phase {
    /// Between requests, or within one that comes.
    case reading
    /// A request is being served.
    case serving
    /// The answer is on its way, then the connection closes.
    case closing
    case closed
  }

  /// Bytes of output that may wait for the client to read before no more records are taken.
  static let maximumOutput = 256 << 10
  /// How long a request, and a connection between two requests, may take.
  private static let patience = Duration.seconds(60)

  let loop: any EventLoop
  let options: DoorOptions
  let broker: DoorBroker
  let members: HTTPGroupMembers
  let texts: HTTPTexts
  private let transport: any ByteStream
  private(set) var link: DoorLink!
  var native = ClientSession()
  private(set) var welcome: Welcome?
  private var phase = Phase.reading

  private var reader = HTTPRequestReader()
  private var request: HTTPRequest?
  /// No request follows the present one.
  private var isLast = false
  private var credentials: Credentials?
  /// What serves the present request.
  private var exchange: (any HTTPExchange)?
  /// Where replies to the connection's requests come; nil before the first one.
  private var inbox: HTTPInbox?
  private var unread: [UInt8] = []
  private(set) var output = HTTPOutput()
  private var transportIsOpen = true
  /// Why the connection ends: with a request that couldn't be read, or since the client's stream has failed.
  @OutOfLine private var error: IOError? = nil
  private var timer: TimerToken?

  init(
    _ transport: any ByteStream, peer: SocketAddress, _ options: DoorOptions, _ broker: DoorBroker,
    _ members: HTTPGroupMembers, _ texts: HTTPTexts, on loop: any EventLoop
  ) {
    self.texts = texts
    self.transport = transport
    self.options = options
    self.broker = broker
    self.members = members
    self.loop = loop
    link = DoorLink(self, peer: peer, on: loop)
  }

  var obstacle: StreamObstacle? { transport.obstacle }

  /// What the client's own stream holds, such as one of TLS, changes without a turn of the door.
  func streamHoldsOther() { link.tellHeldBytes() }

  // MARK: Bytes of the client

  func linkStarted() {
    transport.start(self)
    rearm()
  }

  func streamReadable() {
    unsafe withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 16) { buffer in
      switch unsafe transport.read(into: buffer) {
      case .wouldBlock: break
      case .end:
        transportIsOpen = false
        transport.close()
        leave()
      case .failed(let error): failed(error)
      case .bytes(let count): unsafe unread.append(contentsOf: buffer[..<count])
      }
    }
    take()
    endTurn()
    link.handOut()
  }

  /// Takes what has come, up to the end of a request.
  private func take() {
    var rest = unread[...]
    do {
      while !rest.isEmpty {
        guard case .reading = phase else {
          unread = Array(rest)
          return
        }
        let (event, taken) = try reader.take(rest)
        rest = rest.dropFirst(taken)
        switch event {
        case .head(let request): try begin(request)
        case .body(let body): serve(body)
        case nil: break
        }
      }
    } catch {
      rest = []
      refuse(error)
    }
    unread = Array(rest)
  }

  /// The head of a request has come.
  private func begin(_ request: HTTPRequest) throws(HTTPProblem) {
    self.request = request
    try crossOrigin.check(request.head)
    let isComplete = try reader.beginBody(of: request)
    rearm()
    if isComplete { return serve([]) }
    if request.head.elements("expect").contains(where: { $0.lowercased() == "100-continue" }) {
      output.append("HTTP/1.1 100 Continue\r\n\r\n".utf8)
    }
  }

  // MARK: Serving

  /// The request has come.
  private func serve(_ body: [UInt8]) {
    phase = .serving
    if let timer { loop.cancel(timer) }
    timer = nil
    reader = HTTPRequestReader()
    request?.body = body
    do throws(HTTPProblem) {
      guard let request else { return }
      if request.head.method == "OPTIONS" { return answer(204, "", fields: crossOrigin.preflight(request)) }
      let credentials = try request.credentials()
      guard let known = self.credentials else {
        self.credentials = credentials
        link.adopt(transport.security)
        link.send(
          Hello(
            maximumFrame: DoorLink.maximumFrame, keepalive: 0, name: request.field("user-agent") ?? "",
            credentials: credentials), stream: 0)
        return
      }
      guard known == credentials else {
        throw HTTPProblem(
          401, "this connection is another identity's; open a connection for these credentials")
      }
      if welcome != nil { try start(request) }
    } catch {
      refuse(error)
    }
  }

  private func start(_ request: HTTPRequest) throws(HTTPProblem) {
    guard native.phase == .open else {
      throw HTTPProblem(503, "the broker is about to stop; try again later")
    }
    exchange = try HTTPRoute.exchange(request, by: self)
    if exchange == nil { answer(204, "") }
  }

  /// The connection's inbox, which the first request opens.
  func openInbox() throws(HTTPProblem) -> HTTPInbox {
    if let inbox { return inbox }
    let inbox = try HTTPInbox(by: self)
    self.inbox = inbox
    return inbox
  }

  /// Answers the request as a whole.
  func answer(
    _ status: Int, _ body: String, type: String = "application/json", fields: [(String, String)] = []
  ) {
    answer(status, Array(body.utf8), type: type, fields: fields)
  }

  /// As the other form, with a body of any bytes.
  func answer(_ status: Int, _ body: [UInt8], type: String, fields: [(String, String)]) {
    let stays = !isLast && request?.keepsAlive ?? false
    var all = fields + crossOrigin.fields(for: request, with: fields)
    if stays, status == 204 { all.append(("Cache-Control", "no-store")) }
    if !body.isEmpty { all.append(("Content-Type", type)) }
    if status != 204 { all.append(("Content-Length", "\(body.count)")) }
    if !stays { all.append(("Connection", "close")) }
    output.append(head: status, all)
    output.append(body)
    finish(stays: stays)
  }

  /// Begins an answer whose length isn't known, in chunks.
  func beginAnswer(type: String) {
    output.append(
      head: 200,
      [("Content-Type", type), ("Transfer-Encoding", "chunked"), ("Cache-Control", "no-store")]
        + crossOrigin.fields(for: request))
  }

  /// Appends a chunk to such an answer.
  func append(chunk: [UInt8]) { output.append(chunk: chunk) }

  /// Appends what ``HTTPChunk/framed(_:)`` has made.
  func append(sharedChunk chunk: [UInt8]) { output.append(shared: chunk) }

  /// Ends such an answer; without its last chunk where it isn't whole.
  func endAnswer(isWhole: Bool) {
    if isWhole { output.append(HTTPChunk.last) }
    finish(stays: isWhole && !isLast && request?.keepsAlive ?? false)
  }

  private var crossOrigin: HTTPCrossOrigin { HTTPCrossOrigin(options: options) }

  /// Answers with a problem. The connection closes unless the request has been read.
  func refuse(_ problem: HTTPProblem) {
    if phase != .serving {
      isLast = true
      error = IOError(
        action: "serve \(link.peer)", fault: problem.status == 408 ? .silence : .violation,
        reason: problem.message)
    }
    let code = problem.code.map { ",\"code\":\($0.rawValue),\"error\":\(JSONText.quoted("\($0)"))" } ?? ""
    var fields: [(String, String)] = []
    if problem.status == 401 {
      fields.append(("WWW-Authenticate", "Basic realm=\"sluice\", charset=\"UTF-8\""))
    }
    if let seconds = problem.retryAfter { fields.append(("Retry-After", "\(seconds)")) }
    answer(
      problem.status, "{\"message\":\(JSONText.quoted(problem.message))\(code)}\n", fields: fields)
  }

  private func finish(stays: Bool) {
    exchange = nil
    request = nil
    guard phase != .closing, phase != .closed else { return }
    phase = stays ? .reading : .closing
    reader = HTTPRequestReader()
    guard stays else { return }
    rearm()
    // The next request may have come already.
    if !unread.isEmpty { comeRound() }
  }

  private func comeRound() {
    _ = loop.schedule(at: loop.now) { [weak self] in
      guard let self, case .reading = phase else { return }
      take()
      endTurn()
    }
  }

  // MARK: Frames of the broker

  func linkReceived(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) -> Bool {
    do {
      switch try unsafe native.receive(header, body, at: loop.now.nanoseconds) {
      case .opened(let welcome):
        self.welcome = welcome
        if let request {
          do throws(HTTPProblem) { try start(request) } catch { refuse(error) }
        }
      case .failed(let fault): failed(HTTPProblem(WireError(fault)))
      case .answerPing(let token): link.send(Pong(token: token), stream: 0)
      case let action where header.stream != 0 && header.stream == inbox?.stream:
        if inbox?.received(action) == false { inbox = nil }
      case let action: exchange?.received(action)
      }
    } catch {
      failed(HTTPProblem(error))
    }
    return output.count <= Self.maximumOutput && !(exchange?.isHeld ?? false)
  }

  /// The broker ends the connection, and has said why.
  private func failed(_ problem: HTTPProblem) {
    if let exchange {
      exchange.failed(problem)
    } else if request != nil {
      refuse(problem)
    }
    if case .reading = phase { phase = .closing }
  }

  func linkWritten() { endTurn() }

  func linkDrained() { endTurn() }

  func linkClosed() {
    if case .closed = phase { return }
    failed(HTTPProblem(503, "the broker ends the connection"))
    phase = .closed
    closeTransport()
    if let timer { loop.cancel(timer) }
    timer = nil
    exchange = nil
  }

  // MARK: The end of a turn

  var heldBytes: Int {
    let request = reader.heldBytes + (request?.body.count ?? 0)
    let own = output.count + unread.count + request + (exchange?.heldBytes ?? 0)
    return own + transport.heldBytes
  }

  func endTurn() {
    if case .closed = phase { return }
    defer { link.tellHeldBytes() }
    exchange?.turnEnds()
    sendOutput()
    if output.isEmpty, transportIsOpen, exchange != nil {
      // What follows from everything being written.
      exchange?.turnEnds()
      sendOutput()
    }
    if case .closing = phase, output.isEmpty { return leave() }
    if transportIsOpen {
      let pauses = unread.count > 65_536 || output.count > Self.maximumOutput || link.isFull
      if transport.readsPaused != pauses { transport.readsPaused = pauses }
    }
    link.wake()
    guard output.count <= Self.maximumOutput else { return }
    guard exchange?.isHeld ?? false else { return link.resume() }
    // The client's stream has taken everything, so it reports no room later.
    guard output.isEmpty else { return }
    _ = loop.schedule(at: loop.now) { [weak self] in self?.endTurn() }
  }

  func streamWritable() { endTurn() }

  func streamFailed(_ error: IOError) { failed(error) }

  /// The client's stream has failed.
  private func failed(_ error: IOError) {
    transportIsOpen = false
    self.error = self.error ?? error
    leave()
  }

  private func sendOutput() {
    guard transportIsOpen, !output.isEmpty else { return }
    if output.write(to: transport) { return }
    transportIsOpen = false
    leave()
  }

  private func closeTransport() {
    guard transportIsOpen else { return }
    sendOutput()
    guard transportIsOpen else { return }
    transportIsOpen = false
    transport.close()
  }

  /// Ends both sides.
  private func leave() {
    if case .closed = phase { return }
    phase = .closed
    if !transportIsOpen { output.removeAll() }
    closeTransport()
    if let timer { loop.cancel(timer) }
    timer = nil
    exchange = nil
    link.end(error)
  }

  private func rearm() {
    if let timer { loop.cancel(timer) }
    timer = loop.schedule(after: Self.patience) { [weak self] in
      guard let self else { return }
      timer = nil
      switch phase {
      case .reading where reader.isUntouched: phase = .closing
      case .reading: refuse(HTTPProblem(408, "the request wasn't complete within \(Self.patience)"))
      case .serving, .closing, .closed: return
      }
      endTurn()
    }
  }
}
