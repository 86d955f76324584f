import ReactiveCore
import SluiceIO
import SluiceWire
import Synchronization

/// What lives as long as anybody uses a client: the way onto its loop, the connection there, and who waits for the next one.
///
/// ``Client`` is the handle whose release closes it; topics and subjects made by the client hold only this.
// @unchecked: `inbox`, `end` and `broker` have locks; what is marked so is used on the loop only; the rest is constant.
@usableFromInline
final class ClientCore: @unchecked Sendable {
  typealias Opened = @Sendable (Result<Void, ClientError>) -> Void

  private enum State {
    case idle
    case connecting(Connector)
    /// The stream keeps the connection, and the connection keeps this.
    case open(Weak<Connection>)
    /// Until the next attempt. The timer keeps this.
    case waiting(TimerToken)
    case closed(ClientError)
  }

  let servers: [SocketAddress]
  let options: ClientOptions
  let loop: any EventLoop
  /// What the client's state publisher publishes.
  let states: CurrentValueSubject<ConnectionState, Never>
  private let network: any Network
  /// Why TLS can't be used.
  private let setupFailure: ClientError?

  // From any thread.
  private let inbox = Inbox()
  private let end = Mutex<ClientError?>(nil)
  private let broker = Mutex<BrokerDescription?>(nil)
  private let proved = Mutex<ClientIdentity?>(nil)
  private var signal: (any LoopSignal)!

  // On the loop only.
  private var state = State.idle
  private var reconnect: Reconnect
  /// Of the present connection or attempt.
  private(set) var address: SocketAddress
  /// Told of the first connection.
  private var opened: Opened?
  private var commands: [Command] = []
  private var parking = Parking()
  /// Subscriptions without a stream that still have something for their subscribers, who haven't asked for it.
  private var lingering: [RemoteSubscription] = []
  /// Publications that are tried again at their time.
  private var held: [Publication] = []
  /// For the numbers of producers.
  private var random: SeededRandom

  /// - Parameter servers: at least one.
  init(servers: [SocketAddress], options: ClientOptions, network: any Network, loop: any EventLoop) {
    self.servers = servers
    self.options = options
    (self.network, setupFailure) = Self.secured(network, for: servers, options.tls)
    self.loop = loop
    address = servers[0]
    let seed = options.seed ?? UInt64.random(in: 0 ... .max)
    reconnect = Reconnect(options.reconnect, servers: servers.count, seed: seed)
    random = SeededRandom(seed: ~seed)
    states = CurrentValueSubject(.connecting(servers[0], attempt: 1))
    signal = loop.makeSignal { [weak self] in self?.turn() }
  }

  // MARK: From any thread

  /// Leaves a note for the loop. Notes of one thread are taken up in their order.
  func post(_ command: Command) {
    if inbox.append(command) { signal.fire() }
  }

  /// Why the client is closed; nil while it isn't.
  var failure: ClientError? { end.withLock { $0 } }

  /// What the broker of the last connection said of itself; nil before the first.
  var description: BrokerDescription? { broker.withLock { $0 } }

  /// Who the broker takes the client for; nil where it doesn't ask, and before the first connection.
  var identity: ClientIdentity? { proved.withLock { $0 } }

  /// Connects; calls `opened` on the loop, once.
  func connect(_ opened: @escaping Opened) {
    loop.execute { [self] in
      if case .closed(let error) = state { return opened(.failure(error)) }
      if let setupFailure {
        close(setupFailure)
        return opened(.failure(setupFailure))
      }
      self.opened = opened
      follow(reconnect.first(at: loop.now), cause: nil)
    }
  }

  // MARK: On the loop: connections

  /// Whether a lost connection is followed by another.
  var reconnects: Bool { reconnect.policy != nil }

  private func follow(_ step: Reconnect.Step, cause: ClientError?) {
    switch step {
    case .connect(let server):
      address = servers[server]
      let connector = Connector(core: self) { [self] result in connected(result) }
      state = .connecting(connector)
      states.send(.connecting(address, attempt: reconnect.attempts))
      connector.start(on: network)
    case .wait(let delay):
      let timer = loop.schedule(after: delay) { [self] in follow(reconnect.waited(), cause: cause) }
      state = .waiting(timer)
      states.send(.waiting(delay, attempt: reconnect.attempts + 1, cause: cause ?? .closedHere))
    case .giveUp:
      close(givingUp(cause ?? .closedHere))
    }
  }

  private func givingUp(_ cause: ClientError) -> ClientError {
    if let policy = reconnect.policy, opened == nil || policy.includesFirst, !cause.refusesClient {
      return ClientError(
        .gaveUp, "gave up after \(reconnect.attempts) attempts to connect; the last one: \(cause)")
    }
    guard opened != nil, servers.count > 1 else { return cause }
    return ClientError(
      cause.code, "none of the \(servers.count) servers can be used; the last one: \(cause)")
  }

  private func connected(_ result: Result<(Connection, Welcome), ClientError>) {
    guard case .connecting = state else { return }
    switch result {
    case .success(let (connection, welcome)):
      state = .open(Weak(connection))
      reconnect.connected(at: loop.now)
      broker.withLock { $0 = BrokerDescription(welcome) }
      renewed(ClientIdentity(name: welcome.identity, expires: welcome.expires))
      states.send(.connected(address))
      let opened = exchange(&opened, for: nil)
      opened?(.success(()))
      for attachment in parking.removeAll() { connection.adopt(attachment) }
    case .failure(let error):
      follow(reconnect.failed(at: loop.now, refusesClient: error.refusesClient), cause: error)
    }
  }

  /// The client's credentials hold, or others.
  func renewed(_ identity: ClientIdentity?) {
    proved.withLock { $0 = identity }
  }

  /// The connection is over. Its streams wait for the next one, if there is to be one.
  func lost(_ error: ClientError) {
    guard case .open(let weak) = state, let connection = weak.object else { return }
    guard reconnects, error.code != .protocolViolation else { return close(error) }
    state = .idle
    for attachment in connection.detach() { keep(attachment, error) }
    follow(reconnect.lost(at: loop.now), cause: error)
  }

  /// Keeps what had a stream on a connection that is lost.
  private func keep(_ attachment: Attachment, _ error: ClientError) {
    switch attachment {
    case .subscription(let bridge): if bridge.isCancelled { bridge.forget() } else { park(bridge) }
    case .publication(let publication): park(publication)
    case .request(let request):
      if request.isOver { return }
      if request.isRepeatable { return park(request) }
      request.complete(.failure(Request.answerLost(error, topic: request.topic)), loop)
    }
  }

  /// A number for a producer that has none of its own.
  func makeProducer() -> UInt64 { max(1, random.next()) }

  /// A name that nobody can guess: whoever knows it may publish there. With a seed it is as good as that.
  func makeInboxName() -> String {
    var system = SystemRandomNumberGenerator()
    let numbers = (0..<2).map { _ in options.seed == nil ? system.next() : random.next() }
    return TopicName.inboxPrefix + numbers.map { String($0, radix: 36) }.joined(separator: "-")
  }

  // MARK: On the loop: waiting for a connection

  func park(_ bridge: RemoteSubscription) {
    bridge.interrupted()
    bridge.parking = parking.add(.subscription(bridge))
  }

  func park(_ publication: Publication) {
    publication.interrupted()
    if case .release = publication.outlook { return publication.end(.failure(.closedHere)) }
    publication.parking = parking.add(.publication(publication))
  }

  func park(_ request: Request) {
    request.start(self)
    request.parking = parking.add(.request(request))
  }

  func unpark(_ ticket: inout UInt64?) {
    if let ticket { parking.remove(ticket) }
    ticket = nil
  }

  // MARK: On the loop: waiting for the broker's storage

  /// Tries a publication again later that the broker can't take for now.
  ///
  /// - Returns: false when it isn't to be: nothing has happened then.
  func hold(_ publication: Publication, _ error: ClientError) -> Bool {
    guard
      let (delay, attempt) = publication.reopening.refused(
        options.reconnect, seed: random.next(), at: loop.now)
    else { return false }
    publication.interrupted()
    if case .release = publication.outlook {
      publication.end(.failure(.closedHere))
      return true
    }
    held.append(publication)
    publication.hold = loop.schedule(after: delay) { [self, weak publication] in
      guard let publication else { return }
      release(publication)
      if case .open(let weak) = state, let connection = weak.object {
        connection.adopt(.publication(publication))
      } else {
        park(publication)
      }
    }
    publication.states.send(.waiting(delay, attempt: attempt, cause: error))
    return true
  }

  private func release(_ publication: Publication) {
    if let timer = exchange(&publication.hold, for: nil) { loop.cancel(timer) }
    held.removeAll { $0 === publication }
  }

  func add(lingering bridge: RemoteSubscription) {
    lingering.append(bridge)
  }

  func remove(lingering bridge: RemoteSubscription) {
    lingering.removeAll { $0 === bridge }
  }

  // MARK: On the loop: notes

  /// Makes `turn()` run at the end of this turn of the loop.
  func flushSoon() {
    signal.fire()
  }

  /// Takes up the notes, then sends what there is to send.
  private func turn() {
    inbox.take(into: &commands)
    var batch: [Command] = []
    swap(&batch, &commands)
    for command in batch { perform(command) }
    batch.removeAll(keepingCapacity: batch.capacity <= 1_024)
    swap(&batch, &commands)
    if case .open(let connection) = state { connection.object?.flush() }
  }

  private func perform(_ command: Command) {
    if case .close(let error) = command { return close(error) }
    if case .advance(let publication) = command, publication.hold != nil { return advance(held: publication) }
    if case .open(let weak) = state, let connection = weak.object { return connection.perform(command) }
    if case .closed(let error) = state { return refuse(command, error) }
    switch command {
    case .open(let bridge): if !bridge.isCancelled { park(bridge) }
    case .demand(let bridge):
      bridge.demandNoted()
      bridge.drain()
    case .cancel(let bridge):
      unpark(&bridge.parking)
      bridge.forget()
    case .settle(let bridge): _ = bridge.takeSettlements()
    case .openPublication(let publication): park(publication)
    case .advance(let publication):
      // What it has waits as well, but if it has nothing it needn't.
      guard publication.parking != nil, case .release = publication.outlook else { return }
      unpark(&publication.parking)
      publication.end(.failure(.closedHere))
    case .request(let request): park(request)
    case .becomeSource, .close: break
    }
  }

  /// What it has waits as well, but if it has nothing it needn't.
  private func advance(held publication: Publication) {
    guard case .release = publication.outlook else { return }
    release(publication)
    publication.end(.failure(.closedHere))
  }

  /// Answers a note of somebody who hasn't heard yet that the client is closed.
  private func refuse(_ command: Command, _ error: ClientError) {
    switch command {
    case .open(let bridge): bridge.fail(error)
    case .demand(let bridge):
      bridge.demandNoted()
      bridge.drain()
    case .cancel(let bridge): bridge.forget()
    case .settle: break
    case .openPublication(let publication), .advance(let publication), .becomeSource(let publication):
      publication.end(.failure(error))
    case .request(let request): request.complete(.failure(error), loop)
    case .close: break
    }
  }

  // MARK: On the loop: the end

  /// Ends everything, once. What subscribers still may ask for stays until it is done from here.
  func close(_ error: ClientError) {
    if error.code == .closed {
      for bridge in exchange(&lingering, for: []) { bridge.fail(error) }
    }
    let before = state
    if case .closed = before { return }
    state = .closed(error)
    end.withLock { $0 = error }
    var attachments: [Attachment] = []
    switch before {
    case .idle, .closed: break
    case .connecting(let connector): connector.abandon()
    case .waiting(let timer): loop.cancel(timer)
    case .open(let connection): attachments = connection.object?.detach(saying: error) ?? []
    }
    attachments += parking.removeAll()
    for publication in held {
      release(publication)
      attachments.append(.publication(publication))
    }
    exchange(&opened, for: nil)?(.failure(error))
    for attachment in attachments { end(attachment, error) }
    states.send(.closed(error))
    states.send(completion: .finished)
  }

  private func end(_ attachment: Attachment, _ error: ClientError) {
    switch attachment {
    case .subscription(let bridge):
      if error.code == .closed { bridge.fail(error) } else { bridge.receive(completion: .failure(error)) }
    case .publication(let publication): publication.end(.failure(error))
    case .request(let request): request.complete(.failure(error), loop)
    }
  }
}

extension ClientError {
  /// Whether it will be the same the next time.
  fileprivate var refusesClient: Bool {
    [
      .authenticationRequired, .authenticationFailed, .credentialsExpired, .insecureConnection,
      .certificateRefused,
    ].contains(code)
  }
}

/// A reference that keeps nothing alive.
struct Weak<Object: AnyObject> {
  private(set) weak var object: Object?

  init(_ object: Object) {
    self.object = object
  }
}
