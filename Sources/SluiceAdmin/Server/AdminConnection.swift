import SluiceHTTP
import SluiceIO

/// A visitor's connection: one request after another, each answered by the service.
///
/// On its loop only.
final class AdminConnection: ByteStreamHandler {
  private enum Stage {
    /// Waiting for a request, or receiving one.
    case request
    /// Waiting for the broker's answer.
    case answer
    /// Sending an answer.
    case sending
    /// Sending events, without an end.
    case events(Watcher)
  }

  /// Bytes of further requests that may wait before reading pauses.
  private static let maximumUnread = 64 << 10
  /// Bytes of answers that may wait before the next request is handled.
  private static let maximumOutput = 256 << 10

  private let stream: any ByteStream
  private let service: AdminService
  private let limits: AdminLimits
  private let loop: any EventLoop
  private let closed: (AdminConnection) -> Void
  private var session: HTTPServerSession
  private var stage = Stage.request
  /// When the stage began.
  private var since: MonotonicTime
  /// When the stream last took bytes.
  private var written: MonotonicTime
  /// The number of the request, so that a late answer isn't used for the next request.
  private var number = 0
  private var isOpen = true
  private var isInTurn = false

  /// - Parameter closed: called once, at the end.
  init(
    _ stream: any ByteStream, _ service: AdminService, _ limits: AdminLimits, on loop: any EventLoop,
    closed: @escaping (AdminConnection) -> Void
  ) {
    self.stream = stream
    self.service = service
    self.limits = limits
    self.loop = loop
    self.closed = closed
    session = HTTPServerSession(nil, limits.http)
    since = loop.now
    written = loop.now
  }

  func start() { stream.start(self) }

  /// Closes the connection. Bytes written before are still sent.
  func end() { leave { $0.close() } }

  private func leave(_ leave: (any ByteStream) -> Void) {
    guard isOpen else { return }
    isOpen = false
    enter(.sending)
    leave(stream)
    closed(self)
  }

  private func enter(_ stage: Stage) {
    if case .events(let watcher) = self.stage {
      watcher.wake = nil
      service.feed.remove(watcher)
    }
    self.stage = stage
    since = loop.now
  }

  // MARK: The stream

  func streamReadable() {
    unsafe withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 16) { buffer in
      switch unsafe stream.read(into: buffer) {
      case .wouldBlock: break
      case .end: peerEnded()
      case .failed: leave { _ in }
      case .bytes(let count): unsafe session.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      }
    }
    turn()
  }

  func streamWritable() { turn() }

  func streamFailed(_ error: IOError) { leave { _ in } }

  /// Called when the visitor sends nothing more. A request is still answered; for watchers, this is the end.
  private func peerEnded() {
    if case .events = stage { return end() }
    stream.readsPaused = true
    session.end()
  }

  private func turn() {
    guard isOpen, !isInTurn else { return }
    isInTurn = true
    repeat {
      take()
      if case .events(let watcher) = stage { append(watcher) }
      guard write() else { break }
    } while isOpen && session.output.isEmpty && hasMore
    isInTurn = false
    guard isOpen else { return }
    if session.isClosing, session.output.isEmpty { return end() }
    if case .sending = stage, session.isReading, session.output.isEmpty { enter(.request) }
    let pauses = session.unreadBytes > Self.maximumUnread || session.isClosing
    if stream.readsPaused != pauses { stream.readsPaused = pauses }
  }

  /// Whether another round of the turn would have an effect.
  private var hasMore: Bool {
    if case .events(let watcher) = stage { return watcher.isBehind }
    return session.isReading && session.unreadBytes > 0
  }

  /// Writes as much as the stream accepts. Returns whether it is still open.
  private func write() -> Bool {
    let before = session.output.count
    guard before > 0 else { return isOpen }
    let goesOn = unsafe session.write {
      guard case .wrote(let count) = unsafe stream.write($0) else { return nil }
      return count
    }
    if session.output.count < before { written = loop.now }
    if !goesOn { leave { _ in } }
    return goesOn
  }

  // MARK: Requests

  private func take() {
    while session.output.count <= Self.maximumOutput, let event = session.next(at: loop.wallClock) {
      switch event {
      case .waits:
        enter(.request)
        refuseByHead()
      case .request(let request): ask(request)
      case .problem(let problem): respond(.problem(AdminProblem(problem)))
      }
    }
  }

  /// Answers a request that its head suffices to reject, before the body has arrived.
  private func refuseByHead() {
    guard let request = session.request,
      service.refusesHead(of: AdminRequest(request, from: stream.peer))
    else { return }
    ask(request)
  }

  private func ask(_ request: HTTPRequest) {
    number += 1
    enter(.answer)
    // The connection belongs to the loop on which the answer arrives.
    nonisolated(unsafe) weak let connection = self
    service.answer(AdminRequest(request, from: stream.peer)) { [number] reply in
      unsafe connection?.deliver(reply, number)
    }
  }

  private func deliver(_ reply: Reply, _ number: Int) {
    guard isOpen, self.number == number, case .answer = stage else {
      // The connection of these events has closed.
      if case .events(let watcher) = reply { service.feed.remove(watcher) }
      return
    }
    respond(reply)
    turn()
  }

  private func respond(_ reply: Reply) {
    switch reply {
    case .response(let response):
      session.answer(
        response.status, response.body, type: response.type, response.fields, at: loop.wallClock)
      enter(.sending)
    case .events(let watcher):
      session.beginAnswer(
        type: "text/event-stream; charset=utf-8", HTTPResponse.streamFields, at: loop.wallClock)
      enter(.events(watcher))
      watcher.wake = { [unowned self] in turn() }
    }
  }

  /// Appends the watcher's next bytes once the client has received all earlier ones.
  private func append(_ watcher: Watcher) {
    guard session.output.isEmpty else { return }
    if let part = watcher.next() { return session.append(chunk: part) }
    guard watcher.hasEnded else { return }
    session.endAnswer(isWhole: true)
    enter(.sending)
  }

  // MARK: Deadlines

  /// Ends the connection if a stage takes too long. Called about once a second.
  ///
  /// - Parameter isCrowded: whether few connections are left, so that idle ones get less time.
  func checkDeadlines(isCrowded: Bool) {
    let age = loop.now - since
    let isStuck = !session.output.isEmpty && loop.now - written >= .seconds(limits.idle)
    switch stage {
    case .request:
      let patience = Duration.seconds(isCrowded ? min(1, limits.head) : limits.head)
      guard age >= patience else { return }
      if let problem = session.timeOut(after: patience) { respond(.problem(AdminProblem(problem))) }
      turn()
    case .answer where age >= .seconds(limits.source):
      deliver(.problem(.unavailable("the broker doesn't answer")), number)
    case .sending where isStuck || age >= .seconds(limits.answer): leave { $0.abort() }
    case .events where isStuck: leave { $0.abort() }
    case .answer, .sending, .events: return
    }
  }
}

extension AdminRequest {
  init(_ request: HTTPRequest, from peer: SocketAddress) {
    method = request.head.method
    target = request.head.target
    host = request.field("host")
    origin = request.field("origin")
    fetchSite = request.field("sec-fetch-site")
    authorization = request.field("authorization")
    accept = request.field("accept")
    contentType = request.field("content-type")
    token = request.field(ActionCheck.header.lowercased())
    body = request.body
    self.peer = peer
    // A length that can't be parsed was rejected before.
    let length = (try? request.bodyLength()) ?? nil
    hasBody = length != 0
    bodyLength = length
  }
}

extension AdminProblem {
  init(_ problem: HTTPProblem) {
    self.init(problem.status, problem.message)
  }
}
