import SluiceIO
import SluiceLog
import SluiceSession
import SluiceWire
import Synchronization

/// Asks every loop which streams are attached to a topic, and merges the answers.
package final class TopicInspection: Sendable {
  /// The most subscriptions, and the most publications, that are listed; the counts are of all. With the longest names, and with the consumers that are
  /// listed, they take 64 KB, which fits the smallest frame limit of a client.
  private static let listed = 100
  /// The bytes that the listed subscriptions may take, and those of one without its names.
  private static let (subscriptionBytes, subscriptionSize) = (31_500, 75)
  /// The most cursors, and the most groups, that are listed.
  private static let listedConsumers = 3

  /// The connections that a description names.
  package enum Peers: Sendable {
    case all
    /// The connections of the same identity.
    case only(identity: String)
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
  private let wallClock: Int64
  private let listsConsumers: Bool

  /// - Parameters:
  ///   - listsConsumers: whether the durable cursors and groups are listed.
  ///   - now: the time by the loop's clock.
  ///   - wallClock: the same moment in milliseconds since 1970.
  package init(
    _ topic: Topic, showing peers: Peers, listsConsumers: Bool = true, at now: MonotonicTime, wallClock: Int64
  ) {
    self.topic = topic
    self.listsConsumers = listsConsumers
    self.now = now
    self.wallClock = wallClock
    self.peers = peers
    loopStates = topic.loopStates
    findings = Mutex(Findings(outstanding: loopStates.count))
  }

  /// Calls `completion` once: on some loop, on a thread of the store, or at once.
  package func run(_ completion: @escaping @Sendable (TopicInfo) -> Void) {
    guard listsConsumers else { return ask(ConsumerSummary(), completion) }
    let consumers = topic.consumers(atMost: Self.listedConsumers, now: now)
    let unknown = consumers.furthest.filter { !topic.epoch.log.hasRecord($0.nextOffset) && $0.lag > 0 }
    guard let storage = topic.storage, !unknown.isEmpty else { return ask(consumers, completion) }
    storage.findPlaces(unknown.map(\.nextOffset)) { [self] in ask(consumers, completion) }
  }

  private func ask(_ consumers: ConsumerSummary, _ completion: @escaping @Sendable (TopicInfo) -> Void) {
    guard !loopStates.isEmpty else { return completion(result(Findings(outstanding: 0), consumers)) }
    for loopState in loopStates {
      loopState.loop.loop.execute { [self] in
        let part = look(at: loopState)
        let finished = findings.withLock { findings -> Findings? in
          findings.add(part)
          findings.outstanding -= 1
          return findings.outstanding == 0 ? findings : nil
        }
        if let finished { completion(result(finished, consumers)) }
      }
    }
  }

  /// On the loop of `loopState`.
  private func look(at loopState: TopicLoopState) -> Findings {
    var part = Findings(outstanding: 0)
    loopState.countHolds()
    let hold = topic.holds.withLock { $0.open }
    let now = loopState.loop.loop.now
    switch peers {
    case .all:
      part.subscriptions = Self.first(loopState.subscriptions, open: hold, at: now)
      part.publications = loopState.publications.prefix(Self.listed).map(\.info)
    case .only(let identity):
      let isShown = { (name: String) in name.utf8.elementsEqual(identity.utf8) }
      part.subscriptions = Self.first(
        loopState.subscriptions.filter { isShown($0.identity) }, open: hold, at: now)
      part.publications = loopState.publications.filter { isShown($0.identity) }
        .prefix(Self.listed).map(\.info)
    }
    return part
  }

  private static func first(
    _ subscribers: [any TopicSubscriber], open hold: HoldLog.Hold?, at now: MonotonicTime
  ) -> [TopicInfo.Subscription] {
    let shown = subscribers.compactMap { $0.described(open: hold, at: now) }
    return Array(shown.sorted(by: TopicInfo.Subscription.precedes).prefix(listed))
  }

  /// The first of these subscriptions: fewer than usual if clients, cursors and groups have very long names.
  package static func fitting(_ subscriptions: [TopicInfo.Subscription]) -> [TopicInfo.Subscription] {
    var room = subscriptionBytes
    return Array(
      subscriptions.prefix(listed).prefix { subscription in
        room -= subscriptionSize + subscription.client.utf8.count + subscription.consumer.utf8.count
        return room >= 0
      })
  }

  /// The producers that wait for the store and may be shown.
  private func waiters() -> [TopicInfo.Publication] {
    guard let service = topic.storage?.service else { return [] }
    let now = service.now
    return service.waiters.waiters(on: topic.name).filter { waiter in
      switch peers {
      case .all: true
      case .only(let identity): waiter.identity.utf8.elementsEqual(identity.utf8)
      }
    }.map { $0.info(at: now) }
  }

  private func result(_ findings: Findings, _ consumers: ConsumerSummary) -> TopicInfo {
    var consumers = consumers
    consumers.measure(in: topic.epoch, wallClock: wallClock)
    let publications = waiters() + findings.publications.sorted { $0.connection < $1.connection }
    let epoch = topic.epoch
    let listed = Self.fitting(findings.subscriptions.sorted(by: TopicInfo.Subscription.precedes))
    let subscriptions = listed.map { subscription in
      var subscription = subscription
      subscription.measure(in: epoch, wallClock: wallClock)
      return subscription
    }
    return TopicInfo(
      summary: topic.summary, settings: topic.settings,
      subscriptions: subscriptions,
      publications: Array(publications.prefix(Self.listed)), dropped: topic.dropped,
      storage: topic.storage?.service.snapshot.status ?? StorageStatus(),
      isStated: topic.isStated, withoutProducers: topic.timeWithoutProducers(now: now),
      holds: topic.holds.withLock { $0.shown(at: now) }, consumerCount: UInt32(clamping: consumers.count),
      consumers: consumers.furthest)
  }
}

extension Topic {
  /// The reason why nothing can be published now; nil if records can.
  package var refusal: Fault? { state.withLock { Self.refusal($0, $0.epoch, name) } }

  /// Producers that wait for the store: their publications were ended, and they will retry. They count as the topic's producers.
  package var waitingForStorage: Int { storage?.service.waiters.count(on: name) ?? 0 }

  /// The topic's summary. From any loop; each number is of some moment during the call.
  package var summary: TopicSummary {
    let (epoch, subscriptions, publications) = state.withLock {
      ($0.epoch, $0.subscriptions, $0.budget.publications)
    }
    let kept = epoch.kept()
    return TopicSummary(
      topic: name, epoch: epoch.number, firstOffset: kept.firstOffset, nextOffset: kept.head,
      bytes: UInt64(kept.bytes), ending: epoch.ending, subscriptions: UInt32(clamping: subscriptions),
      publications: UInt32(clamping: publications + waitingForStorage), records: kept.records,
      storage: settings.storage ?? .memory)
  }
}

extension TopicInfo.Subscription {
  /// Orders subscriptions that block producers first.
  package static func precedes(_ left: Self, _ right: Self) -> Bool {
    (left.holding == 0 ? 1 : 0, left.connection, left.stream)
      < (right.holding == 0 ? 1 : 0, right.connection, right.stream)
  }
}
