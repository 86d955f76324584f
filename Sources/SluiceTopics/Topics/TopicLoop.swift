import SluiceIO
import SluiceLog
import SluiceSession
import SluiceWire
import Synchronization

/// The topics' part of an event loop: the loop states to wake, and those that report at the end of the turn.
// @unchecked: `enqueue(_:)` is for any thread, under the lock of `remoteWakes`; everything else belongs to `loop`.
package final class TopicLoop: @unchecked Sendable {
  package let loop: any EventLoop
  package let registry: TopicRegistry
  /// Whether only stored records may be acknowledged or delivered at the moment, because this node of a cluster isn't sure whether it still owns its topics.
  /// Set before a turn's deliveries.
  package var holdsUnsaved = false
  /// Sends dead letters to topics that another node may own; nil for a broker of one node. Set before anything else.
  package var deadLetterRoute: (any DeadLetterRoute)?
  /// The traffic of this turn.
  @safe @exclusivity(unchecked) private var traffic = LoopTraffic()

  @safe @exclusivity(unchecked) private var wakes: [TopicLoopState] = []
  /// Loop states whose subscriptions have moved in this turn.
  @safe @exclusivity(unchecked) private var reports: [TopicLoopState] = []
  private let remoteWakes = Mutex<[TopicLoopState]>([])
  private var signal: (any LoopSignal)?
  /// Whether a batch was noted in this turn to sample its latency.
  private var hasNotedBatch = false

  package init(_ loop: any EventLoop, _ registry: TopicRegistry) {
    self.loop = loop
    self.registry = registry
  }

  /// Creates the signal with which other threads wake the loop. Before anything else; from any thread.
  package func start() {
    signal = loop.makeSignal { [unowned self] in
      let loopStates = remoteWakes.withLock { loopStates in
        let taken = loopStates
        loopStates.removeAll(keepingCapacity: true)
        return taken
      }
      wakes.append(contentsOf: loopStates)
    }
  }

  /// Wakes `loopState` at the end of a turn. From any thread.
  func enqueue(_ loopState: TopicLoopState) {
    if loop.isCurrent {
      wakes.append(loopState)
    } else {
      remoteWakes.withLock { $0.append(loopState) }
      signal?.fire()
    }
  }

  /// Makes `loopState` report the positions of its subscriptions after all of this turn's deliveries.
  func reportAtEndOfTurn(_ loopState: TopicLoopState) {
    reports.append(loopState)
  }

  /// Notes that a batch was appended. One batch in a turn is used to sample the latency of its records.
  package func appended(to topic: Topic, through offset: UInt64) {
    guard !hasNotedBatch else { return }
    hasNotedBatch = true
    topic.sampledBatch.note(offset, at: loop.now)
  }

  // MARK: Traffic

  // Functions, because in another module each access of the property itself would be checked at run time.

  package func received(records: UInt32) { traffic.recordsReceived &+= Int(records) }

  package func sent(records: UInt64) { traffic.recordsSent &+= Int(records) }

  package func received(bytes: Int) { traffic.bytesReceived &+= bytes }

  /// - Parameter bytes: negative for bytes that weren't sent after all.
  package func sent(bytes: Int) { traffic.bytesSent &+= bytes }

  /// Adds the turn's traffic to the metrics.
  package func settleTraffic(with metrics: BrokerMetrics) { traffic.settle(with: metrics) }

  // MARK: The end of a turn

  package var hasWakes: Bool { !wakes.isEmpty }

  /// Wakes the loop states that this turn has noted. Before the turn's deliveries.
  package func wakeTopics() {
    // By index: a woken loop state may wake another.
    var next = 0
    while next < wakes.count {
      wakes[next].woken()
      next += 1
    }
    wakes.removeAllInPlace()
  }

  /// Reports the positions that have moved, and starts the commits that are due. After the turn's deliveries.
  package func endTurn() {
    for loopState in reports { loopState.report() }
    reports.removeAllInPlace()
    registry.stores.kick()
    hasNotedBatch = false
  }
}

extension TopicLoop: GroupLoop {
  package var isServing: Bool { registry.host.isServing() }

  package var longestRecord: Int { registry.limits.record }

  package func keep(
    _ deadLetter: BatchBuilder, in name: String, durably: Bool, _ stored: @escaping @Sendable (Fault?) -> Void
  ) -> GroupDeadLetter {
    let topic: Topic
    do throws(WireError) {
      // Before it is created: a topic that the rules make compact isn't one for dead letters either.
      try registry.checkTakesDeadLetters(name)
      topic = try registry.use(name) { [registry] in registry.host.report(.created(topic: $0.name)) }
    } catch {
      return .refused(error)
    }
    let result = unsafe deadLetter.bytes.withUnsafeBytes { bytes in
      unsafe topic.append(
        bytes, count: deadLetter.count, at: loop.wallClock, in: topic.epoch,
        using: PublishingBudget.Allowance())
    }
    switch result {
    case .appended: topic.published(bytes: deadLetter.bytes.count)
    case .refused(let fault), .unfit(let fault): return .refused(WireError(fault))
    }
    guard durably, topic.storage != nil else { return .kept }
    topic.whenCommitted { [loop] fault in loop.execute { stored(fault) } }
    return .keptLater
  }

  package func deadLettersWait(of group: String, on topic: String, in name: String, _ error: WireError) {
    registry.host.report(.deadLettersWait(topic: topic, group: group, deadLetters: name, error))
  }
}
