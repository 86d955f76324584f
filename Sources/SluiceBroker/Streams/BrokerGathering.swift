import SluiceIO
import SluiceTopics
import SluiceWire
import Synchronization

/// Gathers the state of the broker for BROKER_INFO: reads every topic, a share of them per turn.
final class BrokerGathering: Sendable {
  /// The most stopped topics to list. With the longest names they take 6 KB.
  private static let listed = 20

  private let core: BrokerCore
  private let now: MonotonicTime
  private let stopped = Mutex<(count: Int, longest: [BrokerInfo.StoppedTopic])>((0, []))

  init(_ core: BrokerCore, at now: MonotonicTime) {
    self.core = core
    self.now = now
  }

  /// From any loop.
  func look(at topic: Topic) {
    let holds = topic.holds.withLock { $0.open == nil ? [] : $0.shown(at: now) }
    guard let hold = holds.first(where: { $0.milliseconds > 0 }) else { return }
    stopped.withLock { stopped in
      stopped.count += 1
      stopped.longest.append(
        BrokerInfo.StoppedTopic(topic: topic.name, reason: hold.reason, milliseconds: hold.milliseconds))
      stopped.longest.sort { $0.milliseconds > $1.milliseconds }
      if stopped.longest.count > Self.listed { stopped.longest.removeLast() }
    }
  }

  func info(_ found: FoundProblems, wallClock: Int64) -> BrokerInfo {
    let (count, longest) = stopped.withLock { $0 }
    core.metrics.set(.topics, to: core.registry.count)
    return BrokerInfo(
      time: UInt64(max(wallClock, 0)), uptime: (now - core.startedAt).clampedMilliseconds,
      storage: core.stores.snapshot?.status ?? StorageStatus(), stopped: UInt32(clamping: count),
      stoppedTopics: longest,
      numbers: BrokerMetric.allCases.map {
        BrokerInfo.Number(name: $0.name, value: UInt64(max(core.metrics[$0], 0)))
      }, problems: found.problems.map { BrokerInfo.Problem($0) },
      problemKinds: found.kinds.map { BrokerInfo.ProblemKind($0) })
  }
}
