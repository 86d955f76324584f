import SluiceIO

/// The client's side of NATS: events are passed in, the functions return actions, and `output` contains bytes to send.
///
/// A value without I/O and clock, for the whole lifetime of a client. It looks for a server, performs the handshake, and keeps subscriptions and requests.
/// When the connection is lost, it looks for the next server. The caller owns the transport, calls ``advance(to:)`` at ``nextDeadline``, and writes `output`
/// after each event.
///
/// ```
///   NATSServerPool ── which server ──► NATSHandshake ──► open, with NATSKeepalive ──► leaving
///                       NATSTraffic: messages, requests and subscriptions, over all connections
/// ```
///
/// - A request that was written before its connection ended fails with ``NATSError/Code-swift.struct/outcomeUnknown``, otherwise with
///   ``NATSError/Code-swift.struct/notSent``. Nothing is sent again.
/// - Subscriptions outlive connections. Messages published to them between two connections are lost, as in NATS.
public struct NATSSession {
  enum Phase: Equatable {
    case idle
    /// Waiting for the transport.
    case connecting
    /// The transport is connected, but the server hasn't accepted the client yet.
    case handshaking
    case open
    /// The server is about to stop: requests in flight are still answered, new ones aren't sent.
    case leaving
    case waiting(until: MonotonicTime)
    case closed
  }

  var phase = Phase.idle
  var pool: NATSServerPool
  let options: NATSOptions
  /// The server's description of itself; nil before the first connection.
  public private(set) var info: NATSServerInfo?

  /// Set while the phase is ``Phase/handshaking``.
  private var handshake: NATSHandshake?
  /// The end of the attempt to connect, or of the wait before leaving.
  var phaseDeadline: MonotonicTime?
  var keepalive: NATSKeepalive
  var lastError: NATSError?

  var traffic: NATSTraffic
  private var random: SeededRandom

  /// - Parameters:
  ///   - addresses: at least one.
  ///   - options: names, limits and times.
  ///   - seed: the seed for the order of servers, the jitter and the names of inboxes.
  public init(_ addresses: [NATSAddress], options: NATSOptions, seed: UInt64) {
    self.options = options
    keepalive = NATSKeepalive(interval: options.pingInterval, timeout: options.pingTimeout)
    pool = NATSServerPool(addresses, policy: options.reconnect, seed: seed)
    var random = SeededRandom(seed: ~seed)
    traffic = NATSTraffic(
      inbox: "_INBOX.\(Self.name(from: &random))", maximumBacklog: options.maximumBacklog)
    self.random = random
  }

  /// Returns a subject that no other client can guess.
  public mutating func makeInbox() -> String { "_INBOX.\(Self.name(from: &random))" }

  /// Returns a name that no other client can guess, such as for a batch.
  mutating func makeName() -> String { Self.name(from: &random) }

  /// 22 random letters and digits, too many to guess.
  private static func name(from random: inout SeededRandom) -> String {
    let digits = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
    return String(
      decoding: (0..<22).map { _ in digits[Int(random.next(below: UInt64(digits.count)))] }, as: UTF8.self)
  }

  /// The server of the connection or of the attempt, as `name (address)`, for messages.
  public var server: String {
    let address = pool.current.address.description
    guard let info, isAccepted || handshake?.step == .authenticating else { return address }
    return "\(NATSError.bounded(info.serverName)) (\(address))"
  }

  /// Whether there is a connection whose server has accepted the client.
  var isAccepted: Bool { phase == .open || phase == .leaving }

  /// Whether messages and requests can be sent.
  public var isOpen: Bool { phase == .open }

  /// Whether the last ``NATSAction/connect(_:certificateName:)`` still has to be performed: a callback may have closed the client meanwhile.
  var isConnecting: Bool { phase == .connecting }

  /// The most bytes that headers and payload may have together.
  public var maximumPayload: Int { info?.maximumPayload ?? 1 << 20 }

  /// Requests that wait for answers.
  public var requestCount: Int { traffic.requestCount }

  /// The output for the transport.
  var output: NATSOutput {
    get { traffic.output }
    _modify { yield &traffic.output }
  }

  // MARK: The connection

  /// Begins to connect. May be called once.
  public mutating func start(at now: MonotonicTime) -> NATSAction {
    guard phase == .idle else { return .none }
    return NATSAction(follow(pool.start(at: now), at: now))
  }

  mutating func follow(_ step: NATSServerPool.Step, at now: MonotonicTime) -> [NATSAction] {
    switch step {
    case .connect:
      phase = .connecting
      phaseDeadline = now + options.connectTimeout
      let server = pool.current
      return [.connect(server.address, certificateName: server.certificateName)]
    case .wait(let time):
      phase = .waiting(until: time)
      return []
    case .giveUp:
      let cause = lastError.map { "; the last failure: \($0)" } ?? ""
      return close(NATSError(.gaveUp, "no NATS server could be used, and the client has given up\(cause)"))
    }
  }

  /// Called when the transport of the last ``NATSAction/connect(_:certificateName:)`` is open.
  ///
  /// - Parameters:
  ///   - isSecure: whether it has TLS already.
  ///   - credentials: the credentials for this connection.
  ///   - now: the time of the event.
  public mutating func opened(isSecure: Bool, credentials: NATSCredentials, at now: MonotonicTime) {
    guard phase == .connecting else { return }
    phase = .handshaking
    handshake = NATSHandshake(
      with: pool.current.address, isSecure: isSecure, credentials: credentials, options)
    traffic.begin()
    keepalive.heard(at: now)
  }

  /// Called when TLS is in place.
  public mutating func secured(at now: MonotonicTime) -> NATSAction {
    guard let info else { return .none }
    do throws(NATSError) {
      return perform(try handshake?.secured(info))
    } catch {
      return NATSAction(lose(error, at: now))
    }
  }

  /// Called when the transport, or the attempt to connect, has failed. The caller must have dropped it.
  public mutating func lost(_ error: NATSError, at now: MonotonicTime) -> NATSAction {
    NATSAction(lose(error, at: now, disconnects: false))
  }

  /// Drops the connection, as if it were lost, and tries the other servers first. Does nothing without a connection or without another server.
  public mutating func changeServer(_ error: NATSError, at now: MonotonicTime) -> NATSAction {
    guard phase == .open, pool.servers.count > 1 else { return .none }
    return NATSAction(lose(error, at: now))
  }

  /// Called when bytes have arrived.
  public mutating func heard(at now: MonotonicTime) {
    keepalive.heard(at: now)
  }

  /// Called when the transport has accepted bytes that had to wait: the server reads, even if its answers are delayed by a slow network.
  mutating func madeProgress(at now: MonotonicTime) {
    keepalive.madeProgress(at: now)
  }

  /// Ends the client. Requests fail, and the caller must drop the transport.
  public mutating func close() -> NATSAction {
    NATSAction(close(NATSError(.closed, "the client of the NATS servers was closed")))
  }

  private mutating func close(_ error: NATSError) -> [NATSAction] {
    guard phase != .closed else { return [] }
    let hasTransport = hasTransport
    var actions = traffic.failRequests(error) + traffic.endSubscriptions(error)
    phase = .closed
    phaseDeadline = nil
    handshake = nil
    lastError = error
    if hasTransport { actions.append(.disconnect) }
    return actions + [.closed(error)]
  }

  private var hasTransport: Bool {
    switch phase {
    case .idle, .waiting, .closed: false
    case .connecting, .handshaking, .open, .leaving: true
    }
  }

  mutating func lose(
    _ error: NATSError, at now: MonotonicTime, disconnects: Bool = true
  ) -> [NATSAction] {
    guard hasTransport else { return [] }
    let error = error.at(server)
    let wasOpen = isAccepted
    var actions: [NATSAction] = disconnects ? [.disconnect] : []
    lastError = error
    actions += traffic.failRequests(error)
    phase = .idle
    phaseDeadline = nil
    handshake = nil
    actions.append(.interrupted(error))
    let isRefusal =
      error.code == .authenticationFailed || error.code == .credentialsExpired
      || error.code == .invalidCredentials || error.code == .insecureConnection
    return actions
      + follow(wasOpen ? pool.lost(at: now) : pool.failed(at: now, isRefusal: isRefusal), at: now)
  }

  // MARK: Operations of the server

  /// Handles one operation.
  public mutating func receive(_ operation: NATSOperation, at now: MonotonicTime) -> NATSAction {
    do throws(NATSError) {
      switch operation {
      case .message(let message): return try received(message, at: now)
      case .info(let json): return try received(NATSServerInfo(json: json), at: now)
      case .ping:
        if isAccepted || handshake?.step == .authenticating {
          output.append { NATSEncoder.pong(into: &$0) }
        }
        return .none
      case .pong: return handshake?.step == .authenticating ? becomeReady() : .none
      case .ok: return .none
      case .error(let text): return refused(text.text, at: now)
      }
    } catch {
      return NATSAction(lose(error, at: now))
    }
  }

  /// Called when the server has broken the protocol, or its bytes can't be parsed.
  public mutating func violated(_ error: NATSError, at now: MonotonicTime) -> NATSAction {
    NATSAction(lose(error, at: now))
  }

  private mutating func received(_ info: NATSServerInfo, at now: MonotonicTime) throws(NATSError)
    -> NATSAction
  {
    var info = info
    // Later INFOs may omit the nonce.
    if info.nonce.isEmpty, handshake?.step != .greeting { info.nonce = self.info?.nonce ?? "" }
    self.info = info
    if options.usesDiscoveredServers { pool.learn(info.connectURLs) }
    switch phase {
    case .handshaking: return perform(try handshake?.received(info))
    case .open where info.isLameDuck:
      // Without another server, this one is used until it stops.
      guard pool.servers.count > 1 else { return .lameDuck(server: server) }
      phase = .leaving
      phaseDeadline = now + options.lameDuckPatience
      let notice = NATSAction.lameDuck(server: server)
      return NATSAction([notice] + leaveIfDone(at: now))
    case .idle, .connecting, .open, .leaving, .waiting, .closed: return .none
    }
  }

  private mutating func perform(_ action: NATSHandshake.Action?) -> NATSAction {
    switch action {
    case .secure:
      let server = pool.current
      return .secure(server.address, certificateName: server.certificateName)
    case .connect(let connect):
      output.append {
        NATSEncoder.connect(connect.json, into: &$0)
        NATSEncoder.ping(into: &$0)
      }
      return .none
    case .some(.none), nil: return .none
    }
  }

  private mutating func becomeReady() -> NATSAction {
    guard let info else { return .none }
    phase = .open
    phaseDeadline = nil
    handshake = nil
    pool.connected()
    traffic.resume()
    return .ready(info)
  }

  private mutating func refused(_ text: String, at now: MonotonicTime) -> NATSAction {
    var (error, isFatal) = NATSError.read(text)
    error.server = server
    if isFatal { return NATSAction(lose(error, at: now)) }
    guard let subject = error.subject else { return .none }
    if text.lowercased().contains("subscription") {
      return NATSAction(traffic.refuseSubscriptions(to: subject, error))
    }
    guard let number = traffic.refuseRequest(to: subject) else { return .none }
    return NATSAction([.failed(number, error)] + leaveIfDone(at: now))
  }

  private mutating func received(_ message: NATSMessageView, at now: MonotonicTime) throws(NATSError)
    -> NATSAction
  {
    guard isAccepted else { throw .violation("a message came before the handshake was done") }
    switch traffic.receive(message, at: now) {
    case .unknown: return .none
    case .message: return .deliver(message)
    case .lastMessage: return .several([.deliver(message), .subscriptionEnded(message.subscription, nil)])
    case .answer(let request): return .answer(request, message)
    case .lastAnswer(let request):
      guard phase == .leaving, traffic.requestCount == 0 else { return .answer(request, message) }
      return .several([.answer(request, message)] + leaveIfDone(at: now))
    case .noResponders(let request, let subject):
      return NATSAction(
        [.failed(request, .noResponders(subject, server: server))] + leaveIfDone(at: now))
    }
  }

  /// Moves to another server once no request is in flight at this one.
  mutating func leaveIfDone(at now: MonotonicTime, isLate: Bool = false) -> [NATSAction] {
    guard phase == .leaving, traffic.requestCount == 0 || isLate else { return [] }
    let error = NATSError(
      .notSent, "the server is about to stop, and the client goes to another; try again", server: server)
    let failures = traffic.failRequests(error)
    lastError = error
    phase = .idle
    return failures + [.disconnect, .interrupted(error)] + follow(pool.left(at: now), at: now)
  }
}
