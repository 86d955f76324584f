import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceTopics
import SluiceWire

/// The links of a loop to other nodes: found by node and client, opened when they are needed, closed when they aren't.
extension NodeRelay {
  /// The time between two looks for links that aren't used.
  private static let sweepInterval = Duration.seconds(5)

  func links(to node: RemoteNode, for streams: StreamMultiplexer) throws(WireError) -> NodeLinks {
    let frame = min(
      streams.largestBatch + DeliverHeader.size + RecordLayout.timeMarkSize, core.configuration.limits.frame)
    return try links(to: node, as: streams.client.identity, maximumFrame: frame)
  }

  private func links(
    to node: RemoteNode, as identity: Identity, maximumFrame frame: Int
  ) throws(WireError) -> NodeLinks {
    guard let carried = CarriedPermissions.encoded(identity) else {
      throw WireError(.permissionDenied, "the client's permissions can't be sent to another node")
    }
    let key = NodeLinks.Key(node: node, identity: identity.name, carried: carried, maximumFrame: frame)
    if let known = linkTable[key] { return known }
    let new = NodeLinks(key, for: self)
    linkTable.add(new)
    hasBuffer = true
    if sweepTimer == nil { scheduleSweep() }
    return new
  }

  /// A link to a node on behalf of an identity; nil when it has to be opened first.
  func link(to node: RemoteNode, as identity: Identity) -> NodeLink? {
    try? links(to: node, as: identity, maximumFrame: core.configuration.limits.frame).link()
  }

  /// A link to the node that serves a topic, if it still does and has room.
  func link(to node: RemoteNode, of topic: String, for streams: StreamMultiplexer) -> NodeLink? {
    guard routes.route(of: topic) == .remote(node) else { return nil }
    return try? links(to: node, for: streams).link()
  }

  /// Has this node read a topic once for several subscriptions.
  ///
  /// - Returns: nil when another subscription has begun that, or the link has no room.
  func beginMirror(
    of topic: String, epoch: UInt64, from offset: UInt64, for client: Origin, over link: NodeLink
  ) -> Mirror? {
    let mirror = Mirror(
      of: topic, epoch: epoch, from: offset, for: client, over: link, on: loop, pool: core.registry.pool,
      in: mirrors)
    guard mirrors.add(mirror) else { return nil }
    if mirror.begin() { return mirror }
    mirrors.remove(mirror)
    return nil
  }

  /// The first frame of a link.
  func hello(_ key: NodeLinks.Key) -> Hello {
    Hello(
      maximumFrame: UInt32(key.maximumFrame), keepalive: NodeLink.keepalive,
      name: ownName,
      credentials: .node(onBehalfOf: key.identity, carrying: key.carried))
  }

  func address(of node: RemoteNode) throws(SocketAddressError) -> SocketAddress {
    let address = try SocketAddress(parsing: node.address)
    guard case .host(let host, let port) = address, core.configuration.peers?.usesTLS ?? false else {
      return address
    }
    return .tls(host, port: port)
  }

  /// How long the broker of another node may take to answer when this node finds out whether it can be reached.
  private static let probeTimeout = Duration.seconds(2)
  /// As which the node asks others then where clients authenticate.
  private static let probeIdentity = "nodes"

  /// Finds out whether the broker of another node can be reached at its address.
  ///
  /// - Parameters:
  ///   - identity: that of the node's broker.
  ///   - done: called once with why it can't be reached; nil when it was reached.
  func reach(_ node: RemoteNode, identity: UInt64, _ done: @escaping (String?) -> Void) {
    let hello = Hello(
      maximumFrame: UInt32(Limits.smallestFrame), keepalive: NodeLink.keepalive, name: ownName,
      credentials: .node(onBehalfOf: Self.probeIdentity))
    do throws(SocketAddressError) {
      PeerProbe(of: identity, own: core.identity, hello: hello, on: loop, done)
        .connect(to: try address(of: node), over: network, within: Self.probeTimeout)
    } catch {
      done(error.description)
    }
  }

  private var ownName: String { routes.name.isEmpty ? core.configuration.software : "node \(routes.name)" }

  /// How long a link may take to open.
  var linkTimeout: Duration { max(core.configuration.limits.routeWait, .seconds(1)) }

  /// A link to a node couldn't be opened, or was lost.
  func linkFailed(to node: RemoteNode) { core.linkFailed(to: node.name) }

  /// A link has opened, or one that couldn't be opened may be tried again.
  func linksChanged() {
    for pattern in patterns { pattern.tryAgain() }
    tryAgain()
  }

  func makeReady(_ link: NodeLink) { linkTable.makeReady(link) }

  /// The number of a new link, among those of the broker's connections.
  func nextLink() -> UInt64 { core.nextConnection() }

  func meter(of node: RemoteNode) -> LinkMeter { core.links.meter(of: node.name) }

  func buffered(_ change: Int) { linkTable.buffered(change) }

  /// Closes the link of that number for its buffered bytes, if it is still there. Its clients open their streams again.
  func closeForBuffering(_ link: UInt64) {
    guard let link = linkTable.connection(link) else { return }
    core.metrics.add(.closedForBuffering)
    core.configuration.report(
      .closedForBuffering(
        connection: link.id, client: "the link to node \(link.node.name)", bytes: link.buffered))
    link.close(because: "too many bytes wait in the broker's connections, and the most in this one")
  }

  func remove(_ link: NodeLink) { linkTable.remove(link) }

  /// Writes what the turn has brought.
  func turnEnded() {
    for link in linkTable.takeReady() { link.flush() }
  }

  private func scheduleSweep() {
    sweepTimer = loop.schedule(after: Self.sweepInterval) { [unowned self] in
      for links in linkTable.all { links.closeIdle(at: loop.now) }
      linkTable.removeIdle()
      sweepTimer = nil
      if !linkTable.all.isEmpty { scheduleSweep() }
    }
  }
}
