import Glibc
import SluiceHTTP
import SluiceIO
import SluiceSession
import SluiceWire

/// A connection of an HTTP client: it serves one request at a time, and is a client of the native protocol towards the broker.
///
/// ``HTTPRoute`` lists the requests.
///
/// The connection to the broker belongs to the credentials of one request. A request with other credentials, such as on a connection that browser tabs share,
/// gets a new connection to the broker. The gateway takes no records from the broker while the client doesn't read.
///
/// On its loop only.
final class HTTPConnection: ByteStreamHandler, DoorLinkClient {
  /// The gateway stops taking records while more bytes of output than this wait for the client.
  static let maximumOutput = 256 << 10
  /// The gateway reads no more while more bytes of further requests than this wait.
  private static let maximumUnread = 64 << 10
  /// How long a client may take to send a request, and may wait before it sends another.
  private static let patience = Duration.seconds(60)

  let loop: any EventLoop
  let options: DoorOptions
  let broker: DoorBroker
  let members: HTTPGroupMembers
  let texts: HTTPTexts
  private let refusals: HTTPRefusal.Waiting
  private let transport: any ByteStream
  private(set) var link: DoorLink!
  var native = ClientSession()
  private(set) var welcome: Welcome?
  /// The client's side.
  private(set) var session: HTTPServerSession
  /// The present request, until it is begun.
  private var request: HTTPRequest?
  private var credentials: Credentials?
  /// Serves the current request.
  private var exchange: (any HTTPExchange)?
  /// Receives the replies to the connection's requests; nil before the first one.
  private var inbox: HTTPInbox?
  private var transportIsOpen = true
  /// Whether the client's stream has been started.
  private var isRead = false
  private var hasEnded = false
  /// Why the connection ends: a request couldn't be read, or the client's stream failed.
  @OutOfLine private var error: IOError? = nil
  /// Why the broker refused the connection.
  @OutOfLine private var refusal: HTTPProblem? = nil
  private var timer: TimerToken?

  init(
    _ transport: any ByteStream, peer: SocketAddress, _ options: DoorOptions, _ broker: DoorBroker,
    _ members: HTTPGroupMembers, _ texts: HTTPTexts, _ refusals: HTTPRefusal.Waiting, on loop: any EventLoop
  ) {
    self.texts = texts
    self.refusals = refusals
    self.transport = transport
    self.options = options
    self.broker = broker
    self.members = members
    self.loop = loop
    session = HTTPServerSession(
      HTTPCrossOrigin(
        options.permittedOrigins, withCredentials: options.allowsCredentials, fields: options.requestFields))
    link = DoorLink(self, peer: peer, on: loop)
  }

  var obstacle: StreamObstacle? { transport.obstacle }

  /// Bytes that the client's own stream holds, such as TLS data, change outside the gateway's turns.
  func streamHoldsOther() { link.tellHeldBytes(heldBytes) }

  // MARK: Bytes of the client

  func linkStarted() {
    guard !isRead else { return sendHello() }
    isRead = true
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
      case .bytes(let count): unsafe session.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      }
    }
    take()
    endTurn()
    link.handOut()
  }

  /// Processes received bytes up to the end of a request.
  private func take() {
    while let event = session.next(at: loop.wallClock) {
      switch event {
      case .waits: rearm()
      case .request(let request): serve(request)
      case .problem(let problem): refuse(problem, .violation)
      }
    }
  }

  // MARK: Serving

  private func serve(_ request: HTTPRequest) {
    loop.cancel(&timer)
    do throws(HTTPProblem) {
      var request = request
      let linked = try HTTPLinks.takeCredentials(of: &request)
      let credentials = if let linked { linked } else { try request.credentials() }
      guard let known = self.credentials else {
        (self.credentials, self.request) = (credentials, request)
        return sendHello()
      }
      guard known == credentials else { return try begin(request, as: credentials) }
      if welcome != nil { try start(request) } else { self.request = request }
    } catch {
      refuse(error)
    }
  }

  private func sendHello() {
    link.adopt(transport.security)
    link.send(
      Hello(
        maximumFrame: DoorLink.maximumFrame, keepalive: 0, name: request?.field("user-agent") ?? "",
        credentials: credentials ?? .none), stream: 0)
  }

  /// Opens a new connection to the broker for a request whose credentials differ from those of the previous one.
  private func begin(_ request: HTTPRequest, as credentials: Credentials) throws(HTTPProblem) {
    guard let accept = broker.accept else { throw HTTPProblem.stopping }
    link.end()
    (native, welcome, inbox) = (ClientSession(), nil, nil)
    (self.credentials, self.request) = (credentials, request)
    link = DoorLink(self, peer: link.peer, on: loop)
    accept(link, loop)
  }

  private func start(_ request: HTTPRequest) throws(HTTPProblem) {
    guard native.phase == .open else {
      throw HTTPProblem.stopping
    }
    if request.path == ["links"] { return try HTTPLinks.answer(request, by: self) }
    exchange = try HTTPRoute.exchange(request, by: self)
    if exchange == nil { answer(204, "") }
  }

  /// Continues the same request with another exchange.
  func goOn(_ next: () throws(HTTPProblem) -> any HTTPExchange) {
    do throws(HTTPProblem) { exchange = try next() } catch { refuse(error) }
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
    session.answer(status, body, type: type, fields, at: loop.wallClock)
    answered()
  }

  /// Begins an answer whose length isn't known, in chunks.
  func beginAnswer(type: String) { session.beginAnswer(type: type, at: loop.wallClock) }

  /// Appends a chunk to such an answer.
  func append(chunk: [UInt8]) { session.append(chunk: chunk) }

  /// Appends a chunk that ``HTTPChunk/framed(_:)`` has encoded.
  func append(sharedChunk chunk: [UInt8]) { session.append(sharedChunk: chunk) }

  /// Ends such an answer; omits the last chunk if the answer is incomplete.
  func endAnswer(isWhole: Bool) {
    session.endAnswer(isWhole: isWhole)
    answered()
  }

  /// Answers with a problem. The connection ends unless the request has been read.
  func refuse(_ problem: HTTPProblem) {
    session.refuse(problem, problem.text, at: loop.wallClock)
    answered()
  }

  /// Answers malformed input with a problem. The connection then ends.
  private func refuse(_ problem: HTTPProblem, _ fault: PeerFault) {
    error = IOError(action: "serve \(link.peer)", fault: fault, reason: problem.message)
    refuse(problem)
  }

  private func answered() {
    exchange = nil
    request = nil
    guard session.isReading else { return }
    rearm()
    // The next request may have arrived already.
    if session.unreadBytes > 0 { comeRound() }
  }

  private func comeRound() {
    _ = loop.schedule(at: loop.now) { [weak self] in
      guard let self, session.isReading else { return }
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
        if let request = request.take() {
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
    return session.output.count <= Self.maximumOutput && !(exchange?.isHeld ?? false)
  }

  /// The broker has ended the connection for this reason.
  private func failed(_ problem: HTTPProblem) {
    if !isRead {
      // For example, there are too many connections.
      refusal = problem
      return
    }
    if let exchange {
      exchange.failed(problem)
    } else if session.isWithinRequest || welcome == nil && !session.isClosing {
      refuse(problem)
    }
    session.end()
  }

  func linkWritten() { endTurn() }

  func linkDrained() { endTurn() }

  func linkClosed() {
    guard !hasEnded else { return }
    if !isRead, let refusal {
      hasEnded = true
      return HTTPRefusal(transport, session, refusal, refusals, on: loop).begin()
    }
    failed(.disconnected)
    hasEnded = true
    closeTransport()
    loop.cancel(&timer)
    exchange = nil
  }

  // MARK: The end of a turn

  var heldBytes: Int { session.heldBytes + (exchange?.heldBytes ?? 0) + transport.heldBytes }

  func endTurn() {
    guard !hasEnded else { return }
    defer { link.tellHeldBytes(heldBytes) }
    exchange?.turnEnds()
    sendOutput()
    if session.output.isEmpty, transportIsOpen, exchange != nil {
      // Steps that wait until all output is written.
      exchange?.turnEnds()
      sendOutput()
    }
    if session.isClosing, session.output.isEmpty { return leave() }
    let isBehind = session.output.count > Self.maximumOutput
    if transportIsOpen {
      let pauses = session.unreadBytes > Self.maximumUnread || isBehind || link.isFull
      if transport.readsPaused != pauses { transport.readsPaused = pauses }
    }
    link.wake()
    guard !isBehind else { return }
    guard exchange?.isHeld ?? false else { return link.resume() }
    // The client's stream took all output, so it won't report that it is writable.
    guard session.output.isEmpty else { return }
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
    guard transportIsOpen, !session.output.isEmpty else { return }
    let goesOn = unsafe session.write {
      guard case .wrote(let count) = unsafe transport.write($0) else { return nil }
      return count
    }
    if goesOn { return }
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
    guard !hasEnded else { return }
    hasEnded = true
    if !transportIsOpen { session.dropOutput() }
    closeTransport()
    loop.cancel(&timer)
    exchange = nil
    link.end(error)
  }

  // MARK: The time for a request

  private func rearm() {
    loop.cancel(&timer)
    timer = loop.schedule(after: Self.patience) { [weak self] in
      guard let self else { return }
      timer = nil
      if let problem = session.timeOut(after: Self.patience) { refuse(problem, .silence) }
      endTurn()
    }
  }
}
