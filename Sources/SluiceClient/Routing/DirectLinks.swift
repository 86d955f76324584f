import SluiceIO
import SluiceWire

/// The client's connection to a node of the cluster that its broker has sent it to. On the loop only.
final class DirectLink {
  fileprivate enum State {
    case idle
    case connecting(Connector)
    /// The transport retains the connection.
    case open(Weak<Connection>)
  }

  let name: String
  let address: SocketAddress
  fileprivate var state = State.idle
  /// No stream is opened there before this time, since the node couldn't be reached.
  fileprivate var unusableUntil: MonotonicTime?
  /// When the last connection was lost.
  fileprivate var lostAt: MonotonicTime?
  /// Checks whether the connection is used; before it is open, makes the waiting streams ask again.
  fileprivate var timer: TimerToken?
  fileprivate var wasIdle = false

  fileprivate init(_ name: String, _ address: SocketAddress) {
    self.name = name
    self.address = address
  }

  /// Nil while there is none.
  var connection: Connection? {
    if case .open(let weak) = state { weak.object } else { nil }
  }
}

/// The client's connections to the nodes of a cluster that serve its streams, one for each node; the client's own broker isn't among them. On the
/// loop only.
///
/// ```
///  own broker ──REDIRECT──► DirectLinks ──► DirectLink ──► Connection ── streams
///       ▲                       │  not reachable: relayed by the own broker
///       └───── moved, lost ─────┘
/// ```
final class DirectLinks {
  /// The most nodes that streams are opened at; those of further ones are relayed.
  private static let mostNodes = 256
  /// The longest time for connecting to a node, with the handshake.
  private static let connectTimeout = Duration.seconds(2)
  /// How often streams that wait for a connection ask the client's broker again. A node that doesn't answer may have failed; another one then takes over its
  /// topics long before the connect timeout.
  private static let askInterval = Duration.milliseconds(250)
  /// How long streams are relayed whose node couldn't be reached.
  private static let unusableTime = Duration.seconds(60)
  /// How long after the loss of a connection its node may have failed. Its topics are then about to move, so streams aren't relayed, but ask for their new
  /// node.
  private static let failoverTime = Duration.seconds(5)
  /// The time after which a connection is closed that had no stream at its beginning and its end.
  private static let idleTime = Duration.seconds(15)
  /// How many times in a row a stream may be sent to nodes that don't serve its topic, before it is relayed.
  private static let mostStrays = 3

  private unowned let core: ClientCore
  /// In the order in which they were created.
  private var links: [DirectLink] = []

  init(_ core: ClientCore) {
    self.core = core
  }

  // MARK: Streams

  /// Opens a stream at the node that the client's broker has named.
  func open(_ attachment: Attachment, at redirect: Redirect) {
    guard attachment.move?.strays ?? 0 < Self.mostStrays, let address = core.nodeAddress(redirect.address),
      let link = link(to: address, redirect.node)
    else { return core.relay(attachment) }
    link.wasIdle = false
    switch link.state {
    case .open(let weak):
      guard let connection = weak.object else { return core.relay(attachment) }
      connection.streams.open(attachment)
    case .connecting: core.wait(attachment, for: link)
    case .idle:
      if let time = link.unusableUntil, core.loop.now < time { return core.relay(attachment) }
      core.wait(attachment, for: link)
      connect(link)
    }
  }

  private func link(to address: SocketAddress, _ name: String) -> DirectLink? {
    if let link = links.first(where: { $0.address == address }) { return link }
    let now = core.loop.now
    links.removeAll {
      guard case .idle = $0.state else { return false }
      return $0.unusableUntil.map { $0 <= now } ?? true
    }
    guard links.count < Self.mostNodes else { return nil }
    let link = DirectLink(name, address)
    links.append(link)
    return link
  }

  // MARK: Connections

  private func connect(_ link: DirectLink) {
    let connector = Connector(
      core: core, to: link.address, node: link, within: min(core.options.connectTimeout, Self.connectTimeout)
    ) { [unowned self] result in connected(link, result) }
    link.state = .connecting(connector)
    askAgainLater(link)
    connector.start(on: core.nodeNetwork)
  }

  private func askAgainLater(_ link: DirectLink) {
    link.timer = core.loop.schedule(after: Self.askInterval) { [unowned self] in
      link.timer = nil
      guard case .connecting = link.state else { return }
      askAgainLater(link)
      for attachment in core.removeWaiting(for: link) { core.ask(attachment) }
    }
  }

  private func connected(_ link: DirectLink, _ result: Result<(Connection, Welcome), ClientError>) {
    guard case .connecting = link.state else { return }
    core.loop.cancel(&link.timer)
    switch result {
    case .success(let (connection, _)):
      link.state = .open(Weak(connection))
      link.unusableUntil = nil
      link.lostAt = nil
      watch(link)
      for attachment in core.removeWaiting(for: link) { connection.streams.open(attachment) }
    case .failure(let error):
      link.state = .idle
      let now = core.loop.now
      let isFailover = link.lostAt.map { now - $0 < Self.failoverTime } ?? false
      if !isFailover { link.unusableUntil = now + Self.unusableTime }
      for attachment in core.removeWaiting(for: link) {
        if isFailover { core.follow(attachment, error) } else { core.relay(attachment) }
      }
    }
  }

  /// Handles the loss of a connection to a node. Its streams ask the client's broker again.
  func lost(_ link: DirectLink, _ connection: Connection, _ error: ClientError) {
    guard link.connection === connection else { return }
    let now = core.loop.now
    link.state = .idle
    link.lostAt = now
    core.loop.cancel(&link.timer)
    if error.code == .protocolViolation { link.unusableUntil = now + Self.unusableTime }
    for attachment in connection.detach() {
      if case .request(let request) = attachment {
        request.complete(.failure(error), core.loop)
      } else {
        core.follow(attachment, error)
      }
    }
  }

  private func watch(_ link: DirectLink) {
    link.timer = core.loop.schedule(after: Self.idleTime) { [unowned self] in
      link.timer = nil
      guard let connection = link.connection else { return }
      let isIdle = connection.streams.isIdle
      if isIdle, link.wasIdle {
        link.state = .idle
        links.removeAll { $0 === link }
        _ = connection.detach()
      } else {
        link.wasIdle = isIdle
        watch(link)
      }
    }
  }

  /// The open connections.
  var connections: [Connection] { links.compactMap(\.connection) }

  /// Sends the output of all connections.
  func flush() {
    for link in links { link.connection?.flush() }
  }

  /// Closes all connections. Returns the owners of their streams.
  func close(_ error: ClientError) -> [Attachment] {
    exchange(&links, with: []).flatMap { link in
      core.loop.cancel(&link.timer)
      defer { link.state = .idle }
      switch link.state {
      case .idle: return [Attachment]()
      case .connecting(let connector):
        connector.abandon()
        return []
      case .open(let connection): return connection.object?.detach(closing: error) ?? []
      }
    }
  }
}
