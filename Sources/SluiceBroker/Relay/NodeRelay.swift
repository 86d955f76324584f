import SluiceAccess
import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire

/// One loop's part of serving topics of other nodes: looks up routes, has streams wait, and passes them on over links.
///
/// ```
///  client ── StreamMultiplexer ── NodeRelay ── local: as on one node
///                                    ├── moving: WaitingStream, until the routes change
///                                    └── remote: RelayedSubscription … ── NodeLink ── owner
/// ```
///
/// A relay never repeats anything: when the link breaks, or the topic moves, its streams end with ``ErrorCode/topicMoved``, and the clients open them again
/// where they are.
// @unchecked: belongs to `loop`, but for `start()`.
@safe
final class NodeRelay: TopicRouting, @unchecked Sendable {
  /// The most bytes read from a link at a time.
  private static let readSize = 256 << 10
  /// The time between two looks for links that aren't used.
  private static let sweepInterval = Duration.seconds(5)
  /// The time after which subscriptions to patterns are tried again that couldn't begin.
  private static let againDelay = Duration.milliseconds(20)

  let loop: any EventLoop
  let network: any Network
  private let routes: ShardRoutes
  private let core: BrokerCore
  let mirrors: MirrorTable
  private var observation: UInt64?
  private var all: [NodeLinks] = []
  private var byKey: [NodeLinks.Key: NodeLinks] = [:]
  private var ready: [NodeLink] = []
  /// The change of the bytes buffered in links since it was taken last.
  private var newlyBuffered = 0
  private var waiting: [WaitingStream] = []
  /// How many of them don't wait any more.
  private var left = 0
  private var timer: TimerToken?
  private var sweepTimer: TimerToken?
  private(set) var isStopped = false
  private var isTryingAgain = false
  /// Subscriptions to patterns with topics of other nodes.
  var patterns: [RelayedPattern] = []
  private var againTimer: TimerToken?
  /// Allocated with the first link.
  private(set) lazy var readBuffer = UnsafeMutableRawBufferPointer.allocate(
    byteCount: Self.readSize, alignment: 4096)
  private var hasBuffer = false

  /// - Parameters:
  ///   - network: where other nodes are reached.
  ///   - mirrors: those of all loops.
  init(
    _ routes: ShardRoutes, core: BrokerCore, network: any Network, mirrors: MirrorTable, loop: any EventLoop
  ) {
    self.routes = routes
    self.mirrors = mirrors
    self.core = core
    self.network = core.configuration.peers?.network ?? network
    self.loop = loop
  }

  deinit {
    if hasBuffer { unsafe readBuffer.deallocate() }
  }

  /// Observes the routes. Before anything else; from any thread.
  func start() {
    observation = routes.observe { [weak self] in
      guard let self else { return }
      loop.execute { [self] in routesChanged() }
    }
  }

  func stop() {
    isStopped = true
    if let observation { routes.endObservation(observation) }
    loop.cancel(&timer)
    loop.cancel(&sweepTimer)
    loop.cancel(&againTimer)
    for links in all { links.stop() }
    waiting = []
  }

  // MARK: Streams

  func take(_ action: ServerAction, on streams: StreamMultiplexer) throws(WireError) -> Bool {
    if case .subscribePattern(let stream, let frame) = action {
      return try openPattern(action, stream, frame, on: streams)
    }
    if case .listTopics(let stream, let after, let limit) = action {
      return try list(action, on: stream, after: after, limit: limit, on: streams)
    }
    guard let target = action.routed else { return false }
    let route = routes.route(of: target.topic)
    if route == .local {
      // Another node may have the topic by now, and have moved the place on.
      guard target.beginsAtKeptPlace, !routes.lease.isValid(at: loop.readClock()) else { return false }
      try streams.client.require(target)
      wait(action, target, on: streams)
      tryAgainSoon()
      return true
    }
    try streams.client.require(target)
    guard case .remote(let node) = route else {
      wait(action, target, on: streams)
      return true
    }
    // The two nodes don't agree on the owner yet: a stream isn't passed on twice.
    if streams.client.isNode { throw TopicRegistry.moved(target.topic) }
    if streams.redirect(target.stream, to: node) { return true }
    guard let link = try links(to: node, for: streams).link() else {
      wait(action, target, on: streams)
      return true
    }
    action.pass(target, over: link, on: streams, for: self)
    return true
  }

  /// A page of the topics of all nodes; another node is told only what is here.
  private func list(
    _ action: ServerAction, on stream: UInt32, after: String, limit: UInt32, on streams: StreamMultiplexer
  ) throws(WireError) -> Bool {
    let nodes = routes.nodes
    if nodes.isEmpty || streams.client.isNode { return false }
    var links: [NodeLink] = []
    for node in nodes {
      guard let link = try self.links(to: node, for: streams).link() else {
        wait(action, RoutedAction(stream: stream, topic: "", verb: .topicList), on: streams)
        return true
      }
      links.append(link)
    }
    let list = RelayedList(stream, after: after, limit: limit, on: streams)
    streams.attach(list, to: stream)
    list.begin(over: links)
    return true
  }

  // MARK: Patterns

  /// A subscription to the topics of all nodes that a pattern selects; another node is sent only what is here.
  private func openPattern(
    _ action: ServerAction, _ stream: UInt32, _ frame: SubscribePattern, on streams: StreamMultiplexer
  ) throws(WireError) -> Bool {
    if streams.client.isNode { return false }
    guard let agreement = routes.agreement else {
      wait(action, Self.target(of: stream), on: streams)
      return true
    }
    for node in agreement.others.keys.sorted(by: { $0.name < $1.name })
    where try links(to: node, for: streams).link() == nil {
      wait(action, Self.target(of: stream), on: streams)
      return true
    }
    let remote = RelayedPattern(action, frame, stream: stream, by: agreement, on: streams, for: self)
    try PatternStream.open(stream, frame, on: streams, with: remote)
    return true
  }

  private static func target(of stream: UInt32) -> RoutedAction {
    RoutedAction(stream: stream, topic: "", verb: .subscribePattern, kind: .subscription)
  }

  /// Which node serves which shards; nil while a shard moves.
  var agreement: ShardAgreement? { routes.agreement }

  /// The other nodes that have shards, sorted by name.
  var owners: [RemoteNode] { routes.owners }

  func route(of topic: String) -> TopicRoute { routes.route(of: topic) }
  func isOwn(_ topic: String) -> Bool { routes.route(of: topic) == .local }
  func isServed(_ topic: String, by node: RemoteNode) -> Bool { routes.route(of: topic) == .remote(node) }

  /// A link to a node, if it has room.
  func link(to node: RemoteNode, for streams: StreamMultiplexer) -> NodeLink? {
    try? links(to: node, for: streams).link()
  }

  /// A subscription to a pattern couldn't begin, since the nodes didn't agree on who serves what: tries again after a while, with the demand that has come
  /// meanwhile.
  ///
  /// - Parameter deadline: when the client is told to try again.
  func beginAgain(
    _ action: ServerAction, of pattern: PatternStream, on streams: StreamMultiplexer,
    until deadline: MonotonicTime
  ) {
    let stream = pattern.stream
    streams.goOnLater { [unowned self, unowned streams] in
      guard !isStopped, streams.session.object(stream) === pattern else { return }
      streams.releaseStream(stream)
      wait(action, Self.target(of: stream), on: streams, until: deadline)
      tryAgainSoon()
    }
  }

  /// Tries what waits again after a while: nothing tells when it could go on.
  private func tryAgainSoon() {
    guard againTimer == nil else { return }
    againTimer = loop.schedule(after: Self.againDelay) { [unowned self] in
      againTimer = nil
      tryAgain()
    }
  }

  func forget(_ pattern: RelayedPattern) { patterns.removeAll { $0 === pattern } }

  // MARK: Waiting

  private func wait(
    _ action: ServerAction, _ target: RoutedAction, on streams: StreamMultiplexer,
    until deadline: MonotonicTime? = nil
  ) {
    let deadline = deadline ?? waitDeadline
    let stream = WaitingStream(action, target, until: deadline, on: streams, for: self)
    streams.attach(stream, to: target.stream)
    waiting.append(stream)
    arm(for: deadline)
  }

  /// When a stream that begins to wait now has waited for long enough.
  var waitDeadline: MonotonicTime { triedAgain?.deadline ?? loop.now + core.configuration.limits.routeWait }

  /// The stream that is being tried again, whose deadline stays.
  private var triedAgain: WaitingStream?

  private func arm(for deadline: MonotonicTime) {
    guard timer == nil else { return }
    timer = loop.schedule(at: deadline) { [unowned self] in
      timer = nil
      expire()
    }
  }

  private func expire() {
    let late = waiting.filter { !$0.isOver && $0.deadline <= loop.now }
    for stream in late { stream.giveUp(because: problem(of: stream.topic)) }
    removeLeft()
    if let next = waiting.map(\.deadline).min() { arm(for: next) }
  }

  /// A stream doesn't wait any more.
  func leftWaiting() {
    left += 1
    if left > 64, left > waiting.count / 2 { removeLeft() }
  }

  private func removeLeft() {
    left = 0
    waiting.removeAll(where: \.isOver)
  }

  /// Why the node that serves a topic can't be reached; nil when no node serves it.
  private func problem(of topic: String) -> String? {
    if topic.isEmpty {
      return all.first { $0.problem != nil }.map { "node \($0.key.node.name): \($0.problem ?? "")" }
        ?? "a node of the cluster: the connection isn't open yet"
    }
    guard case .remote(let node) = routes.route(of: topic) else { return nil }
    let problem = all.first { $0.key.node == node && $0.problem != nil }?.problem
    return "node \(node.name), which serves it: \(problem ?? "the connection isn't open yet")"
  }

  /// Tries again what waits.
  private func tryAgain() {
    if isTryingAgain { return }
    isTryingAgain = true
    let streams = waiting
    (waiting, left) = ([], 0)
    for stream in streams {
      triedAgain = stream
      stream.tryAgain()
    }
    triedAgain = nil
    isTryingAgain = false
  }

  private func routesChanged() {
    if isStopped { return }
    for links in all {
      links.end { [routes] topic in
        if topic.isEmpty { return false }
        // While it moves, the owner ends the streams itself, behind what it still sends.
        switch routes.route(of: topic) {
        case .moving: return false
        case .local: return true
        case .remote(let node): return node != links.key.node
        }
      }
    }
    for pattern in patterns { pattern.routesChanged() }
    tryAgain()
  }

  // MARK: Links

  private func links(to node: RemoteNode, for streams: StreamMultiplexer) throws(WireError) -> NodeLinks {
    let frame = min(
      streams.largestBatch + DeliverHeader.size + RecordLayout.timeMarkSize, core.configuration.limits.frame)
    return try links(to: node, as: streams.client.identity, maximumFrame: frame)
  }

  private func links(
    to node: RemoteNode, as identity: Identity, maximumFrame frame: Int
  ) throws(WireError) -> NodeLinks {
    guard let carried = CarriedPermissions.encoded(identity) else {
      throw WireError(.permissionDenied, "the client's permissions can't be told to another node")
    }
    let key = NodeLinks.Key(node: node, identity: identity.name, carried: carried, maximumFrame: frame)
    if let links = byKey[key] { return links }
    let links = NodeLinks(key, for: self)
    byKey[key] = links
    all.append(links)
    hasBuffer = true
    if sweepTimer == nil { scheduleSweep() }
    return links
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
  func beginMirror(of topic: String, epoch: UInt64, from offset: UInt64, over link: NodeLink) -> Mirror? {
    let mirror = Mirror(
      of: topic, epoch: epoch, from: offset, over: link, on: loop, pool: core.registry.pool, in: mirrors)
    guard mirrors.add(mirror) else { return nil }
    if mirror.begin() { return mirror }
    mirrors.remove(mirror)
    return nil
  }

  /// The first frame of a link.
  func hello(_ key: NodeLinks.Key) -> Hello {
    Hello(
      maximumFrame: UInt32(key.maximumFrame), keepalive: NodeLink.keepalive,
      name: routes.name.isEmpty ? core.configuration.software : "node \(routes.name)",
      credentials: .node(onBehalfOf: key.identity, carrying: key.carried))
  }

  func address(of node: RemoteNode) throws(SocketAddressError) -> SocketAddress {
    let address = try SocketAddress(parsing: node.address)
    guard case .host(let host, let port) = address, core.configuration.peers?.usesTLS ?? false else {
      return address
    }
    return .tls(host, port: port)
  }

  /// How long a link may take to open.
  var linkTimeout: Duration { max(core.configuration.limits.routeWait, .seconds(1)) }

  /// A link has opened, or one that couldn't be opened may be tried again.
  func linksChanged() {
    for pattern in patterns { pattern.tryAgain() }
    tryAgain()
  }

  func makeReady(_ link: NodeLink) { ready.append(link) }

  /// The number of a new link, among those of the broker's connections.
  func nextLink() -> UInt64 { core.nextConnection() }

  func meter(of node: RemoteNode) -> LinkMeter { core.links.meter(of: node.name) }

  func buffered(_ change: Int) { newlyBuffered += change }

  /// Takes the change of the bytes buffered in links since the last call.
  func takeBuffered() -> Int {
    defer { newlyBuffered = 0 }
    return newlyBuffered
  }

  /// The link with the most buffered bytes, and their number; nil while all buffers are empty.
  var fullest: (link: UInt64, bytes: Int)? {
    let most = all.flatMap(\.connections).max { $0.buffered < $1.buffered }
    return most.flatMap { $0.buffered > 0 ? ($0.id, $0.buffered) : nil }
  }

  /// Closes the link of that number for its buffered bytes, if it is still there. Its clients open their streams again.
  func closeForBuffering(_ link: UInt64) {
    guard let link = all.lazy.flatMap(\.connections).first(where: { $0.id == link }) else { return }
    core.metrics.add(.closedForBuffering)
    core.configuration.report(
      .closedForBuffering(
        connection: link.id, client: "the link to node \(link.node.name)", bytes: link.buffered))
    link.close(because: "too many bytes wait in the broker's connections, and the most in this one")
  }

  func remove(_ link: NodeLink) { ready.removeAll { $0 === link } }

  /// Writes what the turn has brought.
  func turnEnded() {
    guard !ready.isEmpty else { return }
    let links = ready
    ready = []
    for link in links { link.flush() }
  }

  private func scheduleSweep() {
    sweepTimer = loop.schedule(after: Self.sweepInterval) { [unowned self] in
      for links in all { links.closeIdle(at: loop.now) }
      all.removeAll { links in
        if links.isIdle { byKey[links.key] = nil }
        return links.isIdle
      }
      sweepTimer = nil
      if !all.isEmpty { scheduleSweep() }
    }
  }
}
