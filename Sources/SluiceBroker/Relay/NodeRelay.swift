import SluiceAccess
import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire

/// Serves topics of other nodes for one loop: looks up routes, lets streams wait, and relays them over links.
///
/// ```
///  client ── StreamMultiplexer ── NodeRelay ── local: as on one node
///                                    ├── moving: WaitingStream, until the routes change
///                                    └── remote: RelayedSubscription … ── NodeLink ── owner
/// ```
///
/// A relay never retries a stream: when the link fails, or the topic moves, its streams end with ``ErrorCode/topicMoved``, and the clients open them again
/// at their positions.
// @unchecked: belongs to `loop`, except for `start()`.
@safe
final class NodeRelay: TopicRouting, @unchecked Sendable {
  /// The most bytes read from a link at a time.
  private static let readSize = 256 << 10
  /// The delay before waiting streams are tried again.
  private static let againDelay = Duration.milliseconds(20)

  let loop: any EventLoop
  let network: any Network
  let routes: ShardRoutes
  let core: BrokerCore
  let mirrors: MirrorTable
  private var observation: UInt64?
  var linkTable = LinkTable<NodeLinks>()
  private var waiting = WaitingList<WaitingStream>()
  private var timer: TimerToken?
  var sweepTimer: TimerToken?
  private(set) var isStopped = false
  private var isTryingAgain = false
  /// Subscriptions to patterns with topics of other nodes.
  var patterns: [RelayedPattern] = []
  private var againTimer: TimerToken?
  /// Allocated with the first link.
  private(set) lazy var readBuffer = UnsafeMutableRawBufferPointer.allocate(
    byteCount: Self.readSize, alignment: 4096)
  var hasBuffer = false

  /// - Parameters:
  ///   - network: the network that connects to other nodes.
  ///   - mirrors: the mirrors of all loops.
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

  /// Observes the routes. Must be called before anything else; from any thread.
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
    for links in linkTable.all { links.stop() }
    waiting = WaitingList()
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
      // Another node may own the topic by now, and may have a newer position of the cursor or group.
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
    // The two nodes don't agree on the owner yet. A stream isn't relayed twice.
    if streams.client.isNode { throw TopicRegistry.moved(target.topic) }
    if streams.redirect(target.stream, to: node) { return true }
    guard let link = try links(to: node, for: streams).link() else {
      if let problem = routes.problem(of: node) {
        throw WireError(.unreached(target.topic, because: Self.problem(problem, of: node)))
      }
      wait(action, target, on: streams)
      return true
    }
    action.pass(target, over: link, on: streams, for: self)
    return true
  }

  /// Lists a page of the topics of all nodes. For another node, only the topics of this one are listed.
  private func list(
    _ action: ServerAction, on stream: UInt32, after: String, limit: UInt32, on streams: StreamMultiplexer
  ) throws(WireError) -> Bool {
    // A node that can't be reached and owns no shards has no topics.
    let nodes = routes.nodes.filter { routes.problem(of: $0) == nil || routes.owners.contains($0) }
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

  /// Opens a subscription to the topics of all nodes that a pattern selects. For another node, only the topics of this one are included.
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

  /// The owners of all shards; nil while a shard moves.
  var agreement: ShardAgreement? { routes.agreement }

  /// The other nodes that own shards, sorted by name.
  var owners: [RemoteNode] { routes.owners }

  func route(of topic: String) -> TopicRoute { routes.route(of: topic) }
  func isOwn(_ topic: String) -> Bool { routes.route(of: topic) == .local }
  func isServed(_ topic: String, by node: RemoteNode) -> Bool { routes.route(of: topic) == .remote(node) }

  /// Returns a link to a node, if it has room.
  func link(to node: RemoteNode, for streams: StreamMultiplexer) -> NodeLink? {
    try? links(to: node, for: streams).link()
  }

  /// Restarts a subscription to a pattern that couldn't begin because the nodes didn't agree on the owners of shards. It is tried again after a delay, with
  /// the demand that has arrived meanwhile.
  ///
  /// - Parameter deadline: the time at which the client gets an error and has to try again.
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

  /// Tries waiting streams again after a delay, since no event shows when they can continue.
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

  /// The deadline of a stream that begins to wait now.
  var waitDeadline: MonotonicTime { triedAgain?.deadline ?? loop.now + core.configuration.limits.routeWait }

  /// The stream that is being tried again, which keeps its deadline.
  private var triedAgain: WaitingStream?

  private func arm(for deadline: MonotonicTime) {
    guard timer == nil else { return }
    timer = loop.schedule(at: deadline) { [unowned self] in
      timer = nil
      expire()
    }
  }

  private func expire() {
    for stream in waiting.late(at: loop.now) { stream.giveUp(because: problem(of: stream.topic)) }
    if let next = waiting.nextDeadline() { arm(for: next) }
  }

  /// Called when a stream no longer waits.
  func leftWaiting() { waiting.left() }

  /// Returns the reason why the node that serves a topic can't be reached; nil when no node serves it.
  private func problem(of topic: String) -> String? {
    if topic.isEmpty { return linkTable.problem ?? "a node of the cluster: the connection isn't open yet" }
    guard case .remote(let node) = routes.route(of: topic) else { return nil }
    return Self.problem(linkTable.problem(of: node) ?? "the connection isn't open yet", of: node)
  }

  private static func problem(_ reason: String, of node: RemoteNode) -> String {
    "node \(node.name) at \(node.address), which serves it: \(reason)"
  }

  /// Tries waiting streams again.
  func tryAgain() {
    if isTryingAgain { return }
    isTryingAgain = true
    for stream in waiting.takeAll() {
      triedAgain = stream
      stream.tryAgain()
    }
    triedAgain = nil
    isTryingAgain = false
  }

  private func routesChanged() {
    if isStopped { return }
    for links in linkTable.all {
      links.end { [routes] topic in
        if topic.isEmpty { return false }
        // While the topic moves, its owner ends the streams itself, after the frames that it still sends.
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
}
