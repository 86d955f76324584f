import SluiceIO
import SluiceLog
import SluiceTopics
import SluiceWire
import Synchronization

/// The broker's state per event loop: its connections, those that became ready in this turn, and their shared buffers.
///
/// At the end of each turn all ready connections are served.
///
/// Here and in the connections and streams, a property with `@exclusivity(unchecked)` is a value that calls nothing while it changes, so no two
/// accesses can overlap. Each turn uses such properties, and run-time checks would take a large part of the time for a single record.
// @unchecked: belongs to `loop`, but for `start()`.
@safe
final class LoopContext: TurnParticipant, @unchecked Sendable {
  /// The most bytes read from a connection at a time, so that no connection delays the others.
  private static let readSize = 512 << 10

  let loop: any EventLoop
  let core: BrokerCore
  let topics: TopicLoop
  /// Serves the topics of other nodes; nil for a broker of one node.
  let relay: NodeRelay?
  private let bufferBound: BufferBound
  private let isFirst: Bool
  let writes = WriteBatch()
  let readBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: readSize, alignment: 4096)

  @safe @exclusivity(unchecked) private(set) var connections: [Connection] = []
  /// The number of clients by protocol.
  private(set) var doors: [DoorName: Int] = [:]
  /// How many of the connections are those of the broker's own parts.
  private(set) var ownConnections = 0
  @safe @exclusivity(unchecked) private var ready = ReadyQueue<Connection>()
  /// Connections that have only acknowledgements to write. They are served after those with records, for which subscribers wait.
  @safe @exclusivity(unchecked) private var due = ReadyQueue<Connection>()
  private var sweepTimer: TimerToken?
  /// When the next sweep is due.
  private var nextSweep = MonotonicTime(nanoseconds: .max)
  /// Set by ``stop()``: no connection may be added after it.
  private(set) var isStopped = false
  /// The change of the bytes buffered in the connections here, links to other nodes included, since the last turn.
  @safe @exclusivity(unchecked) private var newlyBuffered = 0
  /// Whether reading from connections with publications is paused.
  private var waitsForMemory = false

  /// The durations of turns, and the loop's total working time before the present turn.
  @safe @exclusivity(unchecked) private(set) var turns = Histogram()
  private var busyBefore: UInt64?
  /// The latency of records to subscribers here.
  @safe @exclusivity(unchecked) private(set) var latency = Histogram()

  /// - Parameters:
  ///   - network: the network that connects to other nodes.
  ///   - mirrors: the topics of other nodes that this node reads, shared by its loops.
  ///   - isFirst: true for the broker's loop that does work to be done only once.
  init(
    loop: any EventLoop, core: BrokerCore, network: any Network, mirrors: MirrorTable,
    bufferBound: BufferBound, isFirst: Bool
  ) {
    self.loop = loop
    relay = core.routes.map { NodeRelay($0, core: core, network: network, mirrors: mirrors, loop: loop) }
    self.core = core
    self.bufferBound = bufferBound
    self.isFirst = isFirst
    topics = TopicLoop(loop, core.registry)
    topics.deadLetterRoute = relay.map { DeadLetterSender($0, topics, core) }
  }

  deinit {
    unsafe readBuffer.deallocate()
  }

  /// Registers the context with its loop. Must be called before anything else; from any thread.
  func start() {
    bufferBound.add(self)
    topics.start()
    relay?.start()
    loop.execute { [self] in
      loop.addTurnParticipant(self)
      scheduleSweep()
      // Producers of topics from the store have to attach again.
      if isFirst { for topic in core.registry.all { topic.failWhenProducersStayLost(on: topics) } }
    }
  }

  // MARK: Connections

  /// Serves a new connection. If there are too many, the client gets an error and is disconnected.
  ///
  /// - Parameter openStreams: the streams on all of the broker's loops.
  func accept(_ stream: any ByteStream, openStreams: Int) {
    // The stream was accepted before its listener was closed, and arrives after the loop's connections were closed.
    if isStopped { return stream.abort() }
    let configuration = core.configuration
    guard openStreams <= configuration.limits.connections + BrokerLimits.closingConnections else {
      core.metrics.add(.refusedDescriptors)
      return stream.abort()
    }
    guard !stream.isOwnPart else {
      _ = Connection(id: core.admitOwn(), stream: stream, origin: nil, context: self)
      return
    }
    let origin = PeerOrigin(stream.peer)
    do {
      let id = try core.admit(from: origin)
      _ = Connection(id: id, stream: stream, origin: origin, context: self)
    } catch {
      configuration.report(.refused(nil, peer: stream.peer, error))
      RejectedConnection.tell(stream, error, on: loop, patience: configuration.limits.handshake)
    }
  }

  func add(_ connection: Connection) {
    connection.index = Int32(connections.count)
    connections.append(connection)
    count(connection, 1)
  }

  func remove(_ connection: Connection) {
    connections.removeUnordered(at: Int(connection.index))?.index = connection.index
    count(connection, -1)
  }

  private func count(_ connection: Connection, _ change: Int) {
    if connection.isOwnPart {
      ownConnections += change
    } else {
      doors[DoorName(connection.client.peer), default: 0] += change
    }
  }

  /// Queues a connection with something to write, to be served at the end of this turn.
  func makeReady(_ connection: Connection) {
    guard !connection.isReady else { return }
    connection.isReady = true
    ready.append(connection)
  }

  /// Queues a connection with acknowledgements to write, to be served after those with records.
  func makeDue(_ connection: Connection) {
    guard !connection.isReady, !connection.isDue else { return }
    connection.isDue = true
    due.append(connection)
  }

  /// Applies a new policy of the broker to all connections. From any thread.
  func accessChanged() {
    loop.execute { [self] in
      for connection in connections.reversed() { connection.accessChanged() }
    }
  }

  // MARK: The end of a turn

  func turnEnded() -> Bool {
    writes.seeksBatch = true
    if let routes = core.routes {
      let isHeld = !routes.lease.isValid(at: loop.readClock())
      losesLease = isHeld && !topics.holdsUnsaved
      topics.holdsUnsaved = isHeld
    }
    topics.wakeTopics()
    // Connections that become ready again are served in the next turn, after events were polled.
    for _ in 0..<ready.count {
      guard let connection = ready.popFirst() else { break }
      connection.isReady = false
      connection.flush(in: self)
    }
    while let connection = due.popFirst() {
      connection.isDue = false
      connection.flush(in: self)
    }
    relay?.turnEnded()
    topics.endTurn()
    watchMemory()
    topics.settleTraffic(with: core.metrics)
    measureTurn()
    return !ready.isEmpty || topics.hasWakes
  }

  /// Whether the lease of a node of a cluster has run out in this turn. Answers that were encoded before may contain acknowledgements.
  private(set) var losesLease = false

  /// Whether the lease has run out since the end of the turn began.
  var hasLostLease: Bool {
    guard let routes = core.routes, !topics.holdsUnsaved else { return false }
    return !routes.lease.isValid(at: loop.readClock())
  }

  // MARK: Measurements

  /// Adds the duration of the previous turn: the loop's working time since then.
  private func measureTurn() {
    let busy = loop.busyNanoseconds
    if let busyBefore, busy > busyBefore { turns.add(busy - busyBefore) }
    busyBefore = busy
  }

  /// Adds the latency of a sampled batch that was written to a subscriber's socket.
  func delivered(appendedAt start: MonotonicTime) {
    let now = loop.readClock()
    latency.add(now > start ? now.nanoseconds - start.nanoseconds : 0)
  }

  // MARK: Memory

  /// Counts a change of the bytes buffered in a connection.
  func buffered(_ change: Int) {
    newlyBuffered += change
  }

  private func watchMemory() {
    newlyBuffered += relay?.linkTable.takeBuffered() ?? 0
    if newlyBuffered != 0 {
      core.metrics.add(.bufferedBytes, newlyBuffered)
      let hasGrown = newlyBuffered > 0
      newlyBuffered = 0
      if hasGrown { bufferBound.check() }
    }
    core.watchMemory(on: loop)
    guard core.memory.isOverflowing != waitsForMemory else { return }
    waitsForMemory.toggle()
    for connection in connections { connection.waitForMemory(waitsForMemory) }
  }

  /// The number of the connection here with the most buffered bytes, which may be a link to another node, and these bytes; nil while all buffers are
  /// empty. On the loop.
  var fullest: (connection: UInt64, bytes: Int)? {
    let link = relay?.linkTable.fullest
    let most = connections.max { $0.buffered < $1.buffered }
    if let most, most.buffered > link?.bytes ?? 0 { return (most.id, most.buffered) }
    return link.map { ($0.link, $0.bytes) }
  }

  /// Closes the connection of that number for its buffered bytes, unless it has closed. On the loop.
  func closeForBuffering(_ connection: UInt64) {
    if let connection = connections.first(where: { $0.id == connection }) {
      connection.closeForBuffering()
    } else {
      relay?.closeForBuffering(connection)
    }
    newlyBuffered += relay?.linkTable.takeBuffered() ?? 0
    core.metrics.add(.bufferedBytes, newlyBuffered)
    newlyBuffered = 0
  }

  // MARK: Sweeps

  /// Sweeps all connections periodically, which is cheaper than a timer for each of 10,000 idle ones.
  private func scheduleSweep() {
    let interval = core.sweepInterval
    nextSweep = loop.now + interval
    sweepTimer = loop.schedule(after: interval) { [unowned self] in
      for connection in connections.reversed() { connection.sweep() }
      if isFirst { core.trim(on: loop) }
      scheduleSweep()
    }
  }

  /// Schedules the next sweep early enough to send a PING before the keepalive deadline that a connection has agreed.
  func agreed(keepalive: UInt32) {
    core.agreed(keepalive: keepalive)
    guard let sweepTimer, nextSweep > loop.now + core.sweepInterval else { return }
    loop.cancel(sweepTimer)
    scheduleSweep()
  }

  /// Stops publishing here for an orderly stop, and makes sweeps frequent.
  func quiesce() {
    for connection in connections { connection.drain() }
    if let sweepTimer { loop.cancel(sweepTimer) }
    scheduleSweep()
  }

  /// Closes every connection at once.
  func stop() {
    if let sweepTimer { loop.cancel(sweepTimer) }
    sweepTimer = nil
    isStopped = true
    for connection in connections.reversed() { connection.close() }
    relay?.stop()
  }
}

extension ByteStream {
  /// Whether a part of the broker is on the other side instead of a client. An in-process peer that serves a client has the client's address, whose
  /// port isn't 0.
  var isOwnPart: Bool { isInternal && peer.port == 0 }
}
