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
    /// Between requests, or in the head of one.
    case head
    case body
    /// A request is being served.
    case serving
    /// The answer is on its way, then the connection closes.
    case closing
    case closed
  }

  /// Bytes of output that may wait for the client to read before no more records are taken.
  static let maximumOutput = 256 << 10
  /// The longest body of a request, in bytes.
  static let maximumBody = 16 << 20
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
  private var phase = Phase.head

  private var reader = HTTPHeadReader()
  private var body: HTTPBodyReader?
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
  /// Why the connection ends with a request that couldn't be read.
  @OutOfLine private var fault: DoorFault? = nil
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

  // MARK: Bytes of the client

  func linkStarted() {
    transport.start(self)
    rearm()
  }

  func streamReadable() {
    unsafe withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 16) { buffer in
      switch unsafe transport.read(into: buffer) {
      case .wouldBlock: break
      case .end, .failed:
        transportIsOpen = false
        transport.close()
        leave()
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
        switch phase {
        case .head:
          let found = try Self.takeHead(&reader, rest)
          guard let (head, taken) = found else {
            rest = []
            break
          }
          rest = rest.dropFirst(taken)
          try begin(head)
        case .body:
          guard let taken = try body?.take(rest) else { return }
          rest = rest.dropFirst(taken)
          if body?.isDone == true { serve() }
        case .serving, .closing, .closed:
          unread = Array(rest)
          return
        }
      }
    } catch {
      rest = []
      refuse(error)
    }
    unread = Array(rest)
  }

  private static func takeHead(
    _ reader: inout HTTPHeadReader, _ bytes: ArraySlice<UInt8>
  ) throws(HTTPProblem) -> (head: HTTPRequestHead, taken: Int)? {
    let result = unsafe bytes.withUnsafeBytes { bytes in
      Result { () throws(HTTPRequestHead.Fault) in try unsafe reader.take(bytes) }
    }
    switch result {
    case .success(let found): return found
    case .failure(.malformed(let why)): throw HTTPProblem(400, why)
    case .failure(.notText):
      throw HTTPProblem(
        400, "the request's head isn't UTF-8; send a key of other bytes in base64, as Sluice-Key-Base64")
    case .failure(.tooLarge(let why)): throw HTTPProblem(431, why)
    }
  }

  private func begin(_ head: HTTPRequestHead) throws(HTTPProblem) {
    guard head.version == "1.1" else { throw HTTPProblem(505, "only HTTP/1.1 is understood") }
    guard head.values("host").count == 1 else { throw HTTPProblem(400, "the request needs one Host field") }
    let request = try HTTPRequest(head)
    self.request = request
    try crossOrigin.check(head)
    let length = try request.bodyLength()
    guard length ?? 0 <= Self.maximumBody else {
      throw HTTPProblem(
        413, "the body has more than \(Self.maximumBody) bytes; publish it in several requests")
    }
    let body = HTTPBodyReader(length: length, limit: Self.maximumBody)
    phase = .body
    self.body = body
    rearm()
    if body.isDone { return serve() }
    if head.elements("expect").contains(where: { $0.lowercased() == "100-continue" }) {
      output.append("HTTP/1.1 100 Continue\r\n\r\n".utf8)
    }
  }

  // MARK: Serving

  /// The request has come.
  private func serve() {
    phase = .serving
    if let timer { loop.cancel(timer) }
    timer = nil
    request?.body = body?.body ?? []
    body = nil
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
    if try HTTPRoute.isDone(request) { return answer(204, "") }
    exchange = try HTTPRoute.exchange(request, by: self)
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
    append(head: status, all)
    output.append(body)
    finish(stays: stays)
  }

  /// Begins an answer whose length isn't known, in chunks.
  func beginAnswer(type: String) {
    append(
      head: 200,
      [("Content-Type", type), ("Transfer-Encoding", "chunked"), ("Cache-Control", "no-store")]
        + crossOrigin.fields(for: request))
  }

  /// Appends a chunk to such an answer.
  func append(chunk: [UInt8]) {
    guard !chunk.isEmpty else { return }
    output.append(Self.chunkHead(chunk.count))
    output.append(chunk)
    output.append(Self.lineEnd)
  }

  /// Appends what ``framed(_:)`` has made.
  func append(sharedChunk chunk: [UInt8]) { output.append(shared: chunk) }

  /// A chunk as it is sent; nothing for an empty one, which would end the answer.
  static func framed(_ chunk: [UInt8]) -> [UInt8] {
    guard !chunk.isEmpty else { return [] }
    let head = chunkHead(chunk.count)
    var framed: [UInt8] = []
    framed.reserveCapacity(head.count + chunk.count + lineEnd.count)
    framed += head
    framed += chunk
    framed += lineEnd
    return framed
  }

  private static let lineEnd: [UInt8] = [0x0D, 0x0A]

  private static func chunkHead(_ count: Int) -> [UInt8] { Array("\(String(count, radix: 16))\r\n".utf8) }

  /// Ends such an answer; without its last chunk where it isn't whole.
  func endAnswer(isWhole: Bool) {
    if isWhole { output.append("0\r\n\r\n".utf8) }
    finish(stays: isWhole && !isLast && request?.keepsAlive ?? false)
  }

  private var crossOrigin: HTTPCrossOrigin { HTTPCrossOrigin(options: options) }

  private func append(head status: Int, _ fields: [(String, String)]) {
    let lines = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
    output.append("HTTP/1.1 \(status) \(HTTPProblem.phrases[status] ?? "Error")\r\n\(lines)\r\n".utf8)
  }

  /// Answers with a problem. The connection closes unless the request has been read.
  func refuse(_ problem: HTTPProblem) {
    if phase != .serving {
      isLast = true
      fault = DoorFault(problem.status == 408 ? .silence : .violation, problem.message)
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
    phase = stays ? .head : .closing
    reader = HTTPHeadReader()
    guard stays else { return }
    rearm()
    // The next request may have come already.
    if !unread.isEmpty { comeRound() }
  }

  private func comeRound() {
    _ = loop.schedule(at: loop.now) { [weak self] in
      guard let self, case .head = phase else { return }
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
    if case .head = phase { phase = .closing }
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
    let request = (body?.body.count ?? 0) + (request?.body.count ?? 0)
    let own = output.count + unread.count + reader.heldBytes + request + (exchange?.heldBytes ?? 0)
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

  func streamFailed(_ error: IOError) {
    transportIsOpen = false
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
    link.end(fault)
  }

  private func rearm() {
    if let timer { loop.cancel(timer) }
    timer = loop.schedule(after: Self.patience) { [weak self] in
      guard let self else { return }
      timer = nil
      switch phase {
      case .head where reader.heldBytes == 0: phase = .closing
      case .head, .body: refuse(HTTPProblem(408, "the request wasn't complete within \(Self.patience)"))
      case .serving, .closing, .closed: return
      }
      endTurn()
    }
  }
}
