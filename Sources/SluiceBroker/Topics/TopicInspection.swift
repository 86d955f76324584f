import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceSession
import SluiceWire
import Synchronization

/// Asks every loop which streams are attached to a topic, and merges the answers.
final class TopicInspection: Sendable {
  /// The most subscriptions, and the most publications, that are listed; the counts are of all. With the longest names they take 62 KB, which
  /// fits the smallest frame limit of a client.
  private static let listed = 100

  /// The connections that a description names.
  enum Peers: Sendable {
    case all
    /// The connections of the same identity.
    case only(Identity)
  }

  private struct Findings {
    var outstanding: Int
    var subscriptions: [TopicInfo.Subscription] = []
    var publications: [TopicInfo.Publication] = []

    mutating func add(_ part: Findings) {
      subscriptions += part.subscriptions
      publications += part.publications
    }
  }

  private let topic: Topic
  private let peers: Peers
  private let loopStates: [TopicLoopState]
  private let findings: Mutex<Findings>

  private let now: MonotonicTime

  init(_ topic: Topic, showing peers: Peers, at now: MonotonicTime) {
    self.topic = topic
    self.now = now
    self.peers = peers
    loopStates = topic.loopStates
    findings = Mutex(Findings(outstanding: loopStates.count))
  }

  /// Calls `completion` once, on some loop or at once.
  func run(_ completion: @escaping @Sendable (TopicInfo) -> Void) {
    guard !loopStates.isEmpty else { return completion(result(Findings(outstanding: 0))) }
    for loopState in loopStates {
      loopState.loop.loop.execute { [self] in
        let part = look(at: loopState)
        let finished = findings.withLock { findings -> Findings? in
          findings.add(part)
          findings.outstanding -= 1
          return findings.outstanding == 0 ? findings : nil
        }
        if let finished { completion(result(finished)) }
      }
    }
  }

  /// On the loop of `loopState`.
  private func look(at loopState: TopicLoopState) -> Findings {
    var part = Findings(outstanding: 0)
    loopState.countHolds()
    let hold = topic.holds.withLock { $0.open }
    switch peers {
    case .all:
      part.subscriptions = Self.first(loopState.subscriptions, open: hold)
      part.publications = loopState.publications.prefix(Self.listed).map(\.info)
    case .only(let identity):
      let isShown = { (connection: Connection) in connection.identity.hasName(of: identity) }
      part.subscriptions = Self.first(loopState.subscriptions.filter { isShown($0.connection) }, open: hold)
      part.publications = loopState.publications.filter { isShown($0.connection) }
        .prefix(Self.listed).map(\.info)
    }
    return part
  }

  private static func first(_ consumers: [Consumer], open hold: HoldLog.Hold?) -> [TopicInfo.Subscription] {
    let shown = consumers.compactMap { $0.shown(open: hold) }
    return Array(shown.sorted(by: TopicInfo.Subscription.precedes).prefix(listed))
  }

  /// The producers that wait for the store and may be shown.
  private func waiters() -> [TopicInfo.Publication] {
    guard let service = topic.storage?.service else { return [] }
    let now = service.now
    return service.waiters.waiters(on: topic.name).filter { waiter in
      switch peers {
      case .all: true
      case .only(let identity): waiter.identity.hasName(of: identity)
      }
    }.map { $0.info(at: now) }
  }

  private func result(_ findings: Findings) -> TopicInfo {
    let publications = waiters() + findings.publications.sorted { $0.connection < $1.connection }
    let subscriptions = findings.subscriptions
    return TopicInfo(
      summary: topic.summary, settings: topic.settings,
      subscriptions: Array(subscriptions.sorted(by: TopicInfo.Subscription.precedes).prefix(Self.listed)),
      publications: Array(publications.prefix(Self.listed)), dropped: topic.dropped,
      storage: topic.storage?.service.snapshot.status ?? StorageStatus(),
      isStated: topic.isStated, withoutProducers: topic.timeWithoutProducers(now: now),
      holds: topic.holds.withLock { $0.shown(at: now) })
  }
}

extension Topic {
  /// The reason why nothing can be published now; nil when records can.
  var refusal: Fault? { state.withLock { Self.refusal($0, $0.epoch, name) } }

  /// The topic's summary. From any loop; each number is of some moment during the call.
  var summary: TopicSummary {
    let (epoch, subscriptions, publications) = state.withLock {
      ($0.epoch, $0.subscriptions, $0.budget.publications)
    }
    let kept = epoch.kept()
    return TopicSummary(
      topic: name, epoch: epoch.number, firstOffset: kept.firstOffset, nextOffset: kept.head,
      bytes: UInt64(kept.bytes), ending: epoch.ending, subscriptions: UInt32(clamping: subscriptions),
      publications: UInt32(clamping: publications), records: kept.records,
      storage: settings.storage ?? .memory)
  }
}

extension PublicationStream {
  /// The publication as TOPIC_SHOW describes it. On its loop only.
  var info: TopicInfo.Publication {
    let credit = connection.session.publication(stream)?.records ?? Credit()
    return TopicInfo.Publication(
      connection: connection.id, client: connection.clientName, stream: stream, granted: credit.granted,
      received: credit.spent, waiting: waiting, reason: waitReason)
  }

  /// The reason why the publication has no demand. On its loop only.
  private var waitReason: TopicInfo.Publication.WaitReason {
    guard heldUpSince != nil else { return .none }
    if let fault = topic.storage?.service.refusal {
      return fault.code == .storageFull ? .storageFull : .storageFailed
    }
    if topic.isOutOfMemory { return .memory }
    if !topic.isConnected { return .notConnected }
    if waitsForRate { return .rate }
    if let hold = topic.holds.withLock({ $0.open }) { return hold.cause.reason }
    return topic.isPaced ? .subscribers : .none
  }

  /// For how long the publication has had no demand, in milliseconds; 0 when it has some. On its loop only.
  var waiting: UInt64 {
    guard let heldUpSince else { return 0 }
    return max((connection.context.loop.now - heldUpSince).wholeMilliseconds, 1)
  }
}

extension Duration {
  var wholeMilliseconds: UInt64 {
    let (seconds, attoseconds) = components
    return UInt64(clamping: seconds * 1000 + attoseconds / 1_000_000_000_000_000)
  }
}
