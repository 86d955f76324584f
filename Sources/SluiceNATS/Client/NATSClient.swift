import SluiceIO

/// A client of NATS servers: finds a server, keeps a connection to it, and moves to another server when the connection is lost.
///
/// ```swift
/// let loop = try EpollLoop(name: "nats")
/// let client = try NATSClient(NATSAddress.list(parsing: "nats://a,b,c"), network: SocketNetwork(), on: loop)
/// client.start { event in print(event) }
/// let replies = try client.request("time.now") { result in print(result) }
/// ```
///
/// All functions must be called on the loop. Callbacks run on the loop, never during the call that has registered them. A request's completion is called
/// exactly once unless the request is cancelled; a subscription's handler is never called after ``unsubscribe(_:)``. Callbacks may call any function of the
/// client, ``close()`` included. The owner must close the client: a client that is only released drops its connection at the connection's next event.
// @unchecked: used on the loop only.
public final class NATSClient: @unchecked Sendable {
  /// A change of the connection.
  public enum Event: Sendable {
    /// A connection is open, and subscriptions are in place. Messages published to them while there was no connection are lost.
    case connected(NATSServerInfo)
    /// The connection, or an attempt to connect, has failed. The client tries again.
    case interrupted(NATSError)
    /// The server is about to stop; the client moves to another one.
    case lameDuck(server: String)
    /// The client has ended: it was closed, or it gave up.
    case closed(NATSError)
  }

  /// A request that waits for its answer.
  public struct Request: Hashable, Sendable {
    fileprivate let number: UInt64
  }

  /// A subscription; the number is that of ``NATSMessageView/subscription``.
  public struct Subscription: Hashable, Sendable {
    public let number: UInt64
  }

  public typealias Completion = (Result<NATSMessageView, NATSError>) -> Void

  /// The result of a handler that gets several answers.
  public enum Continuation: Sendable {
    case more
    case done
  }

  public let loop: any EventLoop
  public let options: NATSOptions
  private let line: NATSLine
  private var session: NATSSession
  private var events: ((Event) -> Void)?
  private var callbacks = NATSCallbacks()
  private var signal: (any LoopSignal)!
  private var timer = DeadlineTimer()

  /// - Parameters:
  ///   - addresses: the servers, at least one, in no particular order.
  ///   - options: names, limits, times and TLS.
  ///   - network: the network that opens connections, without TLS.
  ///   - loop: the loop on which the client runs.
  /// - Throws: ``NATSError/Code-swift.struct/tlsFailed`` when a file of ``NATSOptions/tls`` can't be used; `invalidAddress` without an address.
  public init(
    _ addresses: [NATSAddress], options: NATSOptions = NATSOptions(), network: any Network,
    on loop: any EventLoop
  ) throws(NATSError) {
    guard !addresses.isEmpty else {
      throw NATSError(
        .invalidAddress,
        "there is no address of a NATS server; give at least one, such as nats://127.0.0.1:4222")
    }
    line = NATSLine(try NATSConnector(addresses, options, network, on: loop))
    self.loop = loop
    self.options = options
    session = NATSSession(addresses, options: options, seed: options.seed ?? UInt64.random(in: 0 ... .max))
    signal = loop.makeSignal { [weak self] in self?.flush() }
  }

  // MARK: The connection

  /// Connects, and reconnects until ``close()``. May be called once.
  ///
  /// - Parameter events: called with changes of the connection.
  public func start(_ events: @escaping (Event) -> Void) {
    self.events = events
    perform(session.start(at: loop.now))
  }

  /// Ends the client: requests fail, and subscriptions end. Calling it again does nothing.
  public func close() {
    perform(session.close())
  }

  /// Ends the connection, as if it were lost, and tries the other servers first: for a server that accepts connections, but can't provide its
  /// service. Does nothing without a connection or without another server.
  ///
  /// - Parameter error: the cause, which ``Event/interrupted(_:)`` and the failed requests contain.
  public func changeServer(_ error: NATSError) {
    perform(session.changeServer(error, at: loop.now))
  }

  /// Whether messages and requests can be sent.
  public var isConnected: Bool { session.isOpen }

  /// The server's description of itself; nil before the first connection.
  public var serverInfo: NATSServerInfo? { session.info }

  /// The server, as `name (address)`, for messages.
  public var server: String { session.server }

  /// The most bytes that headers and payload of a message may have together.
  public var maximumPayload: Int { session.maximumPayload }

  /// Bytes that wait to be sent to the server.
  public var backlog: Int { session.output.count }

  /// Calls `body` once, at the end of a turn of the loop, when at most `bytes` wait to be sent. Waiting closures are called in the order of these calls,
  /// each as soon as the output of the ones before it has been sent. Not called when the client is closed before.
  package func whenBacklog(isAtMost bytes: Int, _ body: @escaping () -> Void) {
    callbacks.wait(forBacklog: bytes, body)
    flushSoon()
  }

  // MARK: Messages

  /// Publishes a message. It may be lost with the connection; use requests to get an answer.
  ///
  /// - Throws: the reason why nothing was sent.
  public func publish(
    _ subject: String, reply: String = "", headers: NATSHeaders = NATSHeaders(), payload: [UInt8] = []
  ) throws(NATSError) {
    try payload.withBytes { bytes throws(NATSError) in
      try session.publish(subject, reply: reply, headers: headers, payload: bytes)
    }
    flushSoon()
  }

  /// Publishes a message and waits for one answer.
  ///
  /// - Parameters:
  ///   - subject: the subject of the message; without wildcards.
  ///   - headers: the headers; empty to send none.
  ///   - payload: the payload, within the server's limit (`max_payload`).
  ///   - timeout: the time for the answer.
  ///   - completion: called with the answer, valid during the call only, or with the failure: ``NATSError/Code-swift.struct/noResponders``, `timeout`,
  ///     `outcomeUnknown`, `notSent`, `permissionDenied`, `closed`.
  /// - Throws: the reason why nothing was sent; `completion` isn't called then.
  @discardableResult
  public func request(
    _ subject: String, headers: NATSHeaders = NATSHeaders(), payload: [UInt8] = [],
    timeout: Duration = .seconds(5), _ completion: @escaping Completion
  ) throws(NATSError) -> Request {
    try payload.withBytes { bytes throws(NATSError) in
      try request(subject, headers, bytes, timeout: timeout, .one(completion))
    }
  }

  /// Publishes a message and passes on answers until the handler ends the request, or the request fails.
  ///
  /// - Parameters:
  ///   - subject: the subject of the message; without wildcards.
  ///   - headers: the headers; empty to send none.
  ///   - payload: the payload, within the server's limit (`max_payload`).
  ///   - timeout: the time until the first answer, and between answers.
  ///   - handler: called with each answer, valid during the call only. Not called again after a failure.
  /// - Throws: the reason why nothing was sent; `handler` isn't called then.
  @discardableResult
  public func requestMany(
    _ subject: String, headers: NATSHeaders = NATSHeaders(), payload: [UInt8] = [],
    timeout: Duration = .seconds(5),
    _ handler: @escaping (Result<NATSMessageView, NATSError>) -> Continuation
  ) throws(NATSError) -> Request {
    try payload.withBytes { bytes throws(NATSError) in
      try request(subject, headers, bytes, timeout: timeout, .many(handler))
    }
  }

  private func request(
    _ subject: String, _ headers: NATSHeaders, _ payload: NATSBytes, timeout: Duration,
    _ answer: NATSCallbacks.Answer
  ) throws(NATSError) -> Request {
    let number = try session.request(
      subject, headers: headers, payload: payload, isMany: answer.isMany, timeout: timeout, at: loop.now)
    return expect(answer, to: number)
  }

  /// Registers the callback of a request that was encoded.
  private func expect(_ answer: NATSCallbacks.Answer, to number: UInt64) -> Request {
    callbacks.answers[number] = answer
    flushSoon()
    return Request(number: number)
  }

  /// Publishes messages directly after one another, the last one as a request. Either all of them are sent or none.
  ///
  /// - Parameter completion: like that of ``request(_:headers:payload:timeout:_:)``, for the answer to the last message.
  /// - Throws: the reason why nothing was sent.
  @discardableResult
  func requestBehind(
    _ messages: ArraySlice<NATSMessage>, timeout: Duration, _ completion: @escaping Completion
  ) throws(NATSError) -> Request {
    expect(.one(completion), to: try session.requestBehind(messages, timeout: timeout, at: loop.now))
  }

  /// Cancels a request: its completion isn't called. The server may still process it.
  public func cancel(_ request: Request) {
    session.endRequest(request.number)
    let answer = callbacks.answers.removeValue(forKey: request.number)
    _ = consume answer
  }

  /// Subscribes, on the present connection and on all later ones.
  ///
  /// - Parameters:
  ///   - subject: the subject; `*` and `>` are wildcards.
  ///   - queue: a queue group, whose members share the messages; nil to get all messages.
  ///   - limit: the number of messages after which the subscription ends.
  ///   - ended: called when the subscription ends otherwise than by ``unsubscribe(_:)``: without an error when the limit is reached, with one when the
  ///     server rejects it or the client is closed.
  ///   - handler: called with each message, valid during the call only.
  /// - Throws: ``NATSError/Code-swift.struct/invalidSubject``, or `closed`.
  @discardableResult
  public func subscribe(
    _ subject: String, queue: String? = nil, limit: UInt64? = nil,
    ended: @escaping (NATSError?) -> Void = { _ in }, _ handler: @escaping (NATSMessageView) -> Void
  ) throws(NATSError) -> Subscription {
    let number = try session.subscribe(subject, queue: queue, limit: limit)
    callbacks.handlers[number] = .init(deliver: handler, ended: ended)
    flushSoon()
    return Subscription(number: number)
  }

  /// Ends a subscription. Ignored if it has ended before.
  public func unsubscribe(_ subscription: Subscription) {
    session.unsubscribe(subscription.number)
    let handler = callbacks.handlers.removeValue(forKey: subscription.number)
    _ = consume handler
    flushSoon()
  }

  /// Returns a subject for answers that only this client uses.
  public func makeInbox() -> String { session.makeInbox() }

  /// Returns a name for an atomic batch that no other client uses.
  func makeBatchName() -> String { session.makeName() }

  // MARK: What the connection reports

  func heard() { session.heard(at: loop.now) }

  func received(_ operation: NATSOperation) { perform(session.receive(operation, at: loop.now)) }

  func violated(_ error: NATSError) { perform(session.violated(error, at: loop.now)) }

  func secured(_ connection: NATSConnection) {
    guard line.has(connection) else { return }
    perform(session.secured(at: loop.now))
  }

  func lost(_ connection: NATSConnection, _ error: IOError?) {
    guard line.has(connection) else { return }
    line.lost()
    perform(session.lost(NATSError(error), at: loop.now))
  }

  // MARK: Actions

  private func perform(_ action: NATSAction) {
    act(action)
    flushSoon()
  }

  private func act(_ action: NATSAction) {
    switch action {
    case .none: break
    case .deliver(let message): callbacks.handlers[message.subscription]?.deliver(message)
    case .answer(let number, let message): answer(number, message)
    case .failed(let number, let error): callbacks.answers.removeValue(forKey: number)?.fail(error)
    case .subscriptionEnded(let number, let error):
      callbacks.handlers.removeValue(forKey: number)?.ended(error)
    case .connect(let address, let name):
      // An earlier callback may have closed the client.
      if session.isConnecting { connect(to: address, certificateName: name) }
    case .secure(let address, let name):
      do throws(NATSError) {
        try line.secure(address, certificateName: name)
      } catch {
        line.drop()
        perform(session.lost(error, at: loop.now))
      }
    case .disconnect: line.drop()
    case .ready(let info):
      events?(.connected(info))
      tellObservers()
    case .interrupted(let error):
      events?(.interrupted(error))
      tellObservers()
    case .lameDuck(let server): events?(.lameDuck(server: server))
    case .closed(let error):
      timer.cancel(on: loop)
      let last = events
      events = nil
      let (observers, waiting) = (callbacks.removeObservers(), callbacks.removeWaiting())
      _ = (observers, waiting)
      last?(.closed(error))
    case .several(let actions): for action in actions { act(action) }
    }
  }

  /// Calls `observer` at each change of ``isConnected``, until ``endObserving(_:)`` or the client's end.
  func observe(_ observer: @escaping (Bool) -> Void) -> UInt64 {
    callbacks.observe(observer)
  }

  func endObserving(_ number: UInt64) {
    let observer = callbacks.removeObserver(number)
    _ = consume observer
  }

  private func tellObservers() {
    for number in callbacks.observers(toTell: isConnected) { callbacks.observer(number)?(isConnected) }
  }

  private func answer(_ number: UInt64, _ message: NATSMessageView) {
    switch callbacks.answers[number] {
    case .one(let completion):
      callbacks.answers[number] = nil
      completion(.success(message))
    case .many(let handler):
      if handler(.success(message)) == .done { cancel(Request(number: number)) }
    case nil: break
    }
  }

  private func connect(to address: NATSAddress, certificateName: String) {
    line.connect(to: address, certificateName: certificateName) { [weak self] result in
      guard let self else {
        if case .success(let opened) = result { opened.stream.abort() }
        return
      }
      switch result {
      case .success(let opened): self.opened(opened.stream, isSecure: opened.isSecure)
      case .failure(let error): perform(session.lost(error, at: loop.now))
      }
    }
  }

  private func opened(_ stream: any ByteStream, isSecure: Bool) {
    let credentials: NATSCredentials
    do throws(NATSError) {
      credentials = try options.credentials.credentials()
    } catch {
      stream.close()
      return perform(session.lost(error, at: loop.now))
    }
    let connection = NATSConnection(stream, of: self)
    line.take(connection)
    session.opened(isSecure: isSecure, credentials: credentials, at: loop.now)
    connection.start()
    flushSoon()
  }

  // MARK: Output and time

  /// Writes the output, and sets the timer, at the end of this turn.
  private func flushSoon() { signal.fire() }

  func flush() {
    switch line.write(&session.output) {
    case .quiet: break
    case .progress: session.madeProgress(at: loop.now)
    case .failed(let error): return line.end(error)
    }
    while let body = callbacks.takeWaiting(atBacklog: session.output.count) { body() }
    setTimer()
  }

  private func setTimer() {
    timer.set(
      session.nextDeadline, on: loop,
      { [weak self] in
        guard let self else { return }
        timer.fired()
        perform(session.advance(to: loop.now))
      })
  }
}
