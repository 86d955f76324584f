import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceTopics
import SluiceWire

/// The links of a loop to other nodes: finds them by node and client, opens them on demand, and closes idle ones.
extension NodeRelay {
  /// The time between two searches for idle links.
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

  /// Returns a link to a node on behalf of an identity; nil while it is being opened.
  func link(to node: RemoteNode, as identity: Identity) -> NodeLink? {
    try? links(to: node, as: identity, maximumFrame: core.configuration.limits.frame).link()
  }

  /// Returns a link to the node that serves a topic, if it still serves it and the link has room.
  func link(to node: RemoteNode, of topic: String, for streams: StreamMultiplexer) -> NodeLink? {
    guard routes.route(of: topic) == .remote(node) else { return nil }
    return try? links(to: node, for: streams).link()
  }

  /// Begins to read a topic once for several subscriptions.
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

  /// How long the broker of another node may take to answer a probe.
  private static let probeTimeout = Duration.seconds(2)
  /// The identity in probes of other nodes if clients authenticate.
  private static let probeIdentity = "nodes"

  /// Checks whether the broker of another node can be reached at its address.
  ///
  /// - Parameters:
  ///   - identity: the identity of that node's broker.
  ///   - done: called once with the reason why it can't be reached; nil when it was reached.
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

  /// Reports that a link to a node couldn't be opened, or was lost.
  func linkFailed(to node: RemoteNode) { core.linkFailed(to: node.name) }

  /// Called when a link has opened, or when a failed connection may be retried.
  func linksChanged() {
    for pattern in patterns { pattern.tryAgain() }
    tryAgain()
  }

  func makeReady(_ link: NodeLink) { linkTable.makeReady(link) }

  /// The number of a new link, among those of the broker's connections.
  func nextLink() -> UInt64 { core.nextConnection() }

  func meter(of node: RemoteNode) -> LinkMeter { core.links.meter(of: node.name) }

  func buffered(_ change: Int) { linkTable.buffered(change) }

  /// Closes the link with that number for its buffered bytes, if it still exists. Its clients open their streams again.
  func closeForBuffering(_ link: UInt64) {
    guard let link = linkTable.connection(link) else { return }
    core.metrics.add(.closedForBuffering)
    core.configuration.report(
      .closedForBuffering(
        connection: link.id, client: "the link to node \(link.node.name)", bytes: link.buffered))
    link.close(because: "too many bytes wait in the broker's connections, and the most in this one")
  }

  func remove(_ link: NodeLink) { linkTable.remove(link) }

  /// Writes the output of the turn.
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
