import ReactiveCore
import SluiceIO
import SluiceWire
import Synchronization

/// A client's connection, its commands from any thread, and the owners of streams that await the next connection.
///
/// ``Client`` is the handle whose release closes it; topics and subjects made by the client hold only this.
// @unchecked: `commands`, `end`, `broker` and `proved` have locks; what is marked so is used on the loop only; the rest is constant.
@usableFromInline
final class ClientCore: @unchecked Sendable {
  typealias Opened = @Sendable (Result<Void, ClientError>) -> Void

  private enum State {
    case idle
    case connecting(Connector)
    /// The transport retains the connection, and the connection retains this.
    case open(Weak<Connection>)
    /// Until the next attempt. The timer retains this.
    case waiting(TimerToken)
    case closed(ClientError)
  }

  let servers: [SocketAddress]
  let options: ClientOptions
  let loop: any EventLoop
  /// The values of ``Client/connectionState``.
  let states: CurrentValueSubject<ConnectionState, Never>
  /// Why streams are reopened repeatedly whose topics no node serves, or no node that can be reached.
  let unserved = PassthroughSubject<ClientError, Never>()
  /// The values of ``Client/notices``.
  let notices = PassthroughSubject<TopicNotice, Never>()
  private let network: any Network
  /// The network on which the client connects to nodes that the broker names.
  let nodeNetwork: any Network
  /// Why TLS can't be set up.
  private let setupFailure: ClientError?

  // From any thread.
  private let commands = Mutex<[Command]>([])
  private let end = Mutex<ClientError?>(nil)
  private let broker = Mutex<BrokerDescription?>(nil)
  private let proved = Mutex<ClientIdentity?>(nil)
  private var signal: (any LoopSignal)!

  // On the loop only.
  private var state = State.idle
  private var reconnect: Reconnect
  /// The server of the current connection or attempt.
  private(set) var address: SocketAddress
  private(set) lazy var nodes = DirectLinks(self)
  /// Called after the first connection.
  private var opened: Opened?
  /// The commands of this turn; empty between turns, with its memory kept.
  private var batch: [Command] = []
  var awaiting = AwaitingStreams()
  /// Subscriptions whose streams have ended and that still hold records or an end for their subscribers.
  private var draining: [RemoteSubscription] = []
  /// The client ends behind what it has accepted.
  private var shutdown: Shutdown?
  /// A broker has said that another node serves a topic.
  var isInCluster = false
  /// The source of producer ids, and of the seeds for delays.
  var random: SeededRandom

  /// - Parameter servers: at least one.
  init(servers: [SocketAddress], options: ClientOptions, network: any Network, loop: any EventLoop) {
    self.servers = servers
    self.options = options
    (self.network, nodeNetwork, setupFailure) = Self.secured(network, for: servers, options.tls)
    self.loop = loop
    address = servers[0]
    let seed = options.seed ?? UInt64.random(in: 0 ... .max)
    reconnect = Reconnect(options.reconnect, servers: servers.count, seed: seed)
    random = SeededRandom(seed: ~seed)
    states = CurrentValueSubject(.connecting(servers[0], attempt: 1))
    signal = loop.makeSignal { [weak self] in self?.turn() }
  }

  // MARK: From any thread

  /// Makes the loop perform a command. The commands of one thread keep their order.
  func post(_ command: Command) {
    let isFirst = commands.withLock {
      $0.append(command)
      return $0.count == 1
    }
    if isFirst { signal.fire() }
  }

  /// Why the client is closed; nil while it isn't.
  var failure: ClientError? { end.withLock { $0 } }

  /// The description of the last connection's broker; nil before the first connection.
  var description: BrokerDescription? { broker.withLock { $0 } }

  /// The identity that the broker has given the client; nil if the broker has no access control, and before the first connection.
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
      let connector = Connector(core: self, to: address, within: options.connectTimeout) { [self] result in
        connected(result)
      }
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
    return ClientError(cause.code, "none of the \(servers.count) servers can be used; the last one: \(cause)")
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
      let opened = opened.take()
      opened?(.success(()))
      let waiting = awaiting.removeAll { if case .connection = $0 { true } else { false } }
      for (attachment, _) in waiting { connection.streams.open(attachment) }
    case .failure(let error):
      follow(reconnect.failed(at: loop.now, refusesClient: error.refusesClient), cause: error)
    }
  }

  /// The broker has accepted the client's credentials, at the connection's start or later.
  func renewed(_ identity: ClientIdentity?) {
    proved.withLock { $0 = identity }
  }

  /// The connection to the client's own broker.
  var connection: Connection? {
    if case .open(let weak) = state { weak.object } else { nil }
  }

  /// A connection is lost. The owners of its streams await the next one, unless the client gives up.
  func lost(_ lost: Connection, _ error: ClientError) {
    if let node = lost.node { return nodes.lost(node, lost, error) }
    guard let connection, connection === lost else { return }
    guard reconnects, error.code != .protocolViolation else { return close(error) }
    state = .idle
    for attachment in connection.detach() { keep(attachment, error) }
    follow(reconnect.lost(at: loop.now), cause: error)
  }

  /// Keeps the owner of a stream on a lost connection for the next one.
  private func keep(_ attachment: Attachment, _ error: ClientError) {
    switch attachment {
    case .request(let request) where !request.isRepeatable && !request.isOver:
      request.complete(.failure(Request.answerLost(error, topic: request.topic)), loop)
    case .subscription, .publication, .request: awaitConnection(attachment)
    }
  }

  /// Returns an id for a producer without an id of its own.
  func makeProducer() -> UInt64 { max(1, random.next()) }

  /// Returns a name that can't be guessed: each client that knows an inbox's name may publish there. With a seed it is predictable.
  func makeInboxName() -> String {
    var system = SystemRandomNumberGenerator()
    let numbers = (0..<2).map { _ in options.seed == nil ? system.next() : random.next() }
    return TopicName.inboxPrefix + numbers.map { String($0, radix: 36) }.joined(separator: "-")
  }

  func addDraining(_ subscription: RemoteSubscription) {
    draining.append(subscription)
  }

  func removeDraining(_ subscription: RemoteSubscription) {
    draining.removeAll { $0 === subscription }
  }

  // MARK: On the loop: commands

  /// Makes `turn()` run at the end of this turn of the loop.
  func flushSoon() {
    signal.fire()
  }

  /// Performs the commands, then sends the output.
  private func turn() {
    // Commands that are posted meanwhile are the next turn's.
    var batch: [Command] = []
    swap(&batch, &self.batch)
    commands.withLock { swap(&$0, &batch) }
    for command in batch { perform(command) }
    batch.removeAll(keepingCapacity: batch.capacity <= 1_024)
    swap(&batch, &self.batch)
    connection?.flush()
    nodes.flush()
  }

  private func perform(_ command: Command) {
    switch command {
    case .close(let error): close(error)
    case .shutdown(let time, let completion): shutDown(within: time, completion)
    case .advance(let publication) where !publication.isOpen && awaiting.contains(publication):
      // Its records wait for the stream.
      if publication.endsIfReleased() { stopAwaiting(publication) }
    default:
      let node = command.node
      if let connection = node == nil ? connection : node?.connection {
        return connection.streams.perform(command)
      }
      if case .closed(let error) = state { refuse(command, error) } else { performUnconnected(command) }
    }
  }

  private func performUnconnected(_ command: Command) {
    switch command {
    case .open(.subscription(let subscription)) where subscription.isCancelled: break
    case .open(let attachment): awaitConnection(attachment)
    case .demand(let subscription):
      subscription.demandNoted()
      subscription.drain()
    case .cancel(let subscription):
      stopAwaiting(subscription)
      subscription.forget()
    case .settle(let subscription): _ = subscription.takeSettlements()
    case .advance, .becomeSource, .close, .shutdown: break
    }
  }

  /// Refuses a command that was posted before its caller could know that the client is closed.
  private func refuse(_ command: Command, _ error: ClientError) {
    switch command {
    case .open(let attachment): end(attachment, error)
    case .demand, .cancel: performUnconnected(command)
    case .advance(let publication), .becomeSource(let publication): publication.end(.failure(error))
    case .settle, .close, .shutdown: break
    }
  }

  // MARK: On the loop: the end

  private func shutDown(within time: Duration, _ completion: @escaping Client.Completion<Void>) {
    if let shutdown { return shutdown.join(completion) }
    if case .closed(let error) = state {
      return completion(error.code == .closed ? .success(()) : .failure(error))
    }
    let shutdown = Shutdown(self, within: time)
    self.shutdown = shutdown
    shutdown.join(completion)
    shutdown.begin()
  }

  /// The publications, with streams or without.
  var publications: [Publication] {
    connections.flatMap { $0.streams.publications } + awaiting.publications
  }

  /// The open connections, to the client's own broker and to nodes.
  var connections: [Connection] { (connection.map { [$0] } ?? []) + nodes.connections }

  /// Ends everything, once. Draining subscriptions stay until this client closes the connection.
  func close(_ error: ClientError) {
    if error.code == .closed {
      for subscription in exchange(&draining, with: []) { subscription.fail(error) }
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
    case .open(let connection): attachments = connection.object?.detach(closing: error) ?? []
    }
    attachments += nodes.close(error)
    for (attachment, condition) in awaiting.removeAll() {
      if case .timer(let timer) = condition { loop.cancel(timer) }
      attachments.append(attachment)
    }
    opened.take()?(.failure(error))
    for attachment in attachments { end(attachment, error) }
    shutdown?.closed(error)
    states.send(.closed(error))
    states.send(completion: .finished)
    notices.send(completion: .finished)
  }
}
