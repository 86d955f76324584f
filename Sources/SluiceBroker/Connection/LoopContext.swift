import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

/// What the broker keeps per event loop: the connections there, what became ready in this turn, and the memory that they use in turn.
///
/// At the end of each turn everything that became ready is delivered at once.
// @unchecked: `enqueue(_:)` is for any thread, under the lock of `remoteWakes`; everything else belongs to `loop`.
@safe
final class LoopContext: TurnParticipant, @unchecked Sendable {
  /// A connection is read in chunks of at most this, so that none keeps the others waiting.
  private static let readSize = 512 << 10

  let loop: any EventLoop
  let core: BrokerCore
  private let isFirst: Bool
  let writes = WriteBatch()
  let readBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: readSize, alignment: 4096)

  private(set) var connections: [Connection] = []
  private var ready = ReadyQueue<Connection>()
  /// Those that have only acknowledgements to write: records first, they are what somebody waits for.
  private var due = ReadyQueue<Connection>()
  private var wakes: [TopicLoopState] = []
  /// Those whose subscriptions have moved in this turn.
  private var reports: [TopicLoopState] = []
  private let remoteWakes = Mutex<[TopicLoopState]>([])
  private var signal: (any LoopSignal)?
  private var sweepTimer: TimerToken?
  /// When the next sweep is due.
  private var nextSweep = MonotonicTime(nanoseconds: .max)
  /// Set by ``stop()``: no connection may be added any more.
  private(set) var isStopped = false
  /// What waits in the connections here has become so much more since the last turn.
  private var newlyBuffered = 0
  /// Whether those here who publish aren't read from.
  private var waitsForMemory = false

  /// How long turns took, and what the loop had worked before the present one.
  private(set) var turns = Histogram()
  private var busyBefore: UInt64?
  /// How long records took to subscribers here.
  private(set) var latency = Histogram()
  /// In this turn.
  var traffic = LoopTraffic()
  /// A batch was noted in this turn whose way is measured.
  private var hasNotedBatch = false

  /// - Parameter isFirst: true for one of a broker's loops, which does what must be done once.
  init(loop: any EventLoop, core: BrokerCore, isFirst: Bool) {
    self.loop = loop
    self.core = core
    self.isFirst = isFirst
  }

  deinit {
    unsafe readBuffer.deallocate()
  }

  /// Before anything else. From any thread.
  func start() {
    core.bufferBound.add(self)
    signal = loop.makeSignal { [unowned self] in
      let loopStates = remoteWakes.withLock { loopStates in
        let taken = loopStates
        loopStates.removeAll(keepingCapacity: true)
        return taken
      }
      wakes.append(contentsOf: loopStates)
    }
    loop.execute { [self] in
      loop.addTurnParticipant(self)
      scheduleSweep()
      // Producers of topics that were in the store have to come back.
      if isFirst { for topic in core.registry.all { topic.failWhenProducersStayLost(on: self) } }
    }
  }

  /// A topic has more for those who are attached here. From any thread.
  func enqueue(_ loopState: TopicLoopState) {
    if loop.isCurrent {
      wakes.append(loopState)
    } else {
      remoteWakes.withLock { $0.append(loopState) }
      signal?.fire()
    }
  }

  // MARK: Connections

  func add(_ connection: Connection) {
    connection.index = connections.count
    connections.append(connection)
  }

  func remove(_ connection: Connection) {
    let last = connections.removeLast()
    if last !== connection {
      connections[connection.index] = last
      last.index = connection.index
    }
  }

  /// `connection` has something to write: it will be its turn at the end of this one.
  func makeReady(_ connection: Connection) {
    guard !connection.isReady else { return }
    connection.isReady = true
    ready.append(connection)
  }

  /// `connection` has acknowledgements to write: it will be its turn after those with records.
  func makeDue(_ connection: Connection) {
    guard !connection.isReady, !connection.isDue else { return }
    connection.isDue = true
    due.append(connection)
  }

  /// The subscriptions of `loopState` have moved: it tells the topic when all of this turn's deliveries are made.
  func reportAtEndOfTurn(_ loopState: TopicLoopState) {
    reports.append(loopState)
  }

  /// The broker has another policy. From any thread.
  func accessChanged() {
    loop.execute { [self] in
      for connection in connections.reversed() { connection.accessChanged() }
    }
  }

  // MARK: The end of a turn

  func turnEnded() -> Bool {
    writes.seeksBatch = true
    // By index: a loopState that is woken may wake another.
    var next = 0
    while next < wakes.count {
      wakes[next].woken()
      next += 1
    }
    wakes.removeAll(keepingCapacity: true)
    // Those that want another go get it in the next turn, after events were looked at.
    for _ in 0..<ready.count {
      guard let connection = ready.popFirst() else { break }
      connection.isReady = false
      connection.flush()
    }
    while let connection = due.popFirst() {
      connection.isDue = false
      connection.flush()
    }
    for loopState in reports { loopState.report() }
    reports.removeAll(keepingCapacity: true)
    core.storage?.kick()
    watchMemory()
    traffic.settle(with: core.metrics)
    measureTurn()
    return !ready.isEmpty || !wakes.isEmpty
  }

  // MARK: Time taken

  /// The turn before this one is over, and has taken what the loop has worked meanwhile.
  private func measureTurn() {
    let busy = loop.busyNanoseconds
    if let busyBefore, busy > busyBefore { turns.add(busy - busyBefore) }
    busyBefore = busy
    hasNotedBatch = false
  }

  /// A batch was appended, up to that offset. Of one a turn it is measured when a subscriber is sent it.
  func appended(to topic: Topic, through offset: UInt64) {
    guard !hasNotedBatch else { return }
    hasNotedBatch = true
    topic.sampledBatch.note(offset, at: loop.now)
  }

  /// A batch whose way is measured was handed to a subscriber's socket.
  func delivered(appendedAt start: MonotonicTime) {
    let now = loop.readClock()
    latency.add(now > start ? now.nanoseconds - start.nanoseconds : 0)
  }

  // MARK: Memory

  /// What waits in a connection has become more, or less.
  func buffered(_ change: Int) {
    newlyBuffered += change
  }

  private func watchMemory() {
    if newlyBuffered != 0 {
      core.metrics.add(.bufferedBytes, newlyBuffered)
      let hasGrown = newlyBuffered > 0
      newlyBuffered = 0
      if hasGrown { core.bufferBound.check() }
    }
    core.watchMemory(on: loop)
    guard core.memory.isOverflowing != waitsForMemory else { return }
    waitsForMemory.toggle()
    for connection in connections { connection.waitForMemory(waitsForMemory) }
  }

  /// The connection here in which the most waits, and how many bytes; nil while nothing waits. On the loop.
  var fullest: (connection: UInt64, bytes: Int)? {
    guard let most = connections.max(by: { $0.buffered < $1.buffered }), most.buffered > 0 else { return nil }
    return (most.id, most.buffered)
  }

  /// Closes the connection of that number for what waits in it, unless it is gone. On the loop.
  func closeForBuffering(_ connection: UInt64) {
    connections.first { $0.id == connection }?.closeForBuffering()
    core.metrics.add(.bufferedBytes, newlyBuffered)
    newlyBuffered = 0
  }

  // MARK: What time brings

  /// Looks after all connections now and then: cheaper, with 10,000 idle ones, than a timer for each.
  private func scheduleSweep() {
    let interval = core.sweepInterval
    nextSweep = loop.now + interval
    sweepTimer = loop.schedule(after: interval) { [unowned self] in
      for connection in connections.reversed() { connection.sweep() }
      if isFirst { core.trim(on: loop) }
      scheduleSweep()
    }
  }

  /// A connection here has agreed to a deadline for silence. The next sweep comes early enough to send a PING before the deadline.
  func agreed(keepalive: UInt32) {
    core.agreed(keepalive: keepalive)
    guard let sweepTimer, nextSweep > loop.now + core.sweepInterval else { return }
    loop.cancel(sweepTimer)
    scheduleSweep()
  }

  /// Stops publishing here, for an orderly stop, and lets sweeps follow one another quickly from now on.
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
  }
}
