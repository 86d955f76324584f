import SluiceAccess
import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire
import Synchronization

/// Gathers one loop's part of a snapshot, a bounded amount per turn, so that the loop's connections wait only briefly.
///
/// It passes its findings on when it is released: when it is done, or when its loop has ended and dropped the job.
// @unchecked: belongs to its loop, except in `init` and `deinit`, when it has a single reference.
final class LoopSnapshotter: @unchecked Sendable {
  /// The work per turn, in steps of some tens of nanoseconds.
  private static let together = 8_192
  /// The cost of describing a connection or a stream, in steps.
  private static let description = 32
  /// The most subscriptions and publications that are described in all.
  private static let described = 10_000

  private let gathering: SnapshotGathering
  private let context: LoopContext
  private let number: Int
  private var loopStates: ArraySlice<(subject: Int, loopState: TopicLoopState)>
  private var connections: ArraySlice<Connection> = []
  private var left = LoopSnapshotter.described
  private var findings: LoopFindings?

  init(
    for gathering: SnapshotGathering, at context: LoopContext, number: Int,
    loopStates: [(subject: Int, loopState: TopicLoopState)]
  ) {
    self.gathering = gathering
    self.context = context
    self.number = number
    self.loopStates = loopStates[...]
  }

  deinit {
    gathering.take(findings, of: number)
  }

  /// Schedules the next part. From any thread.
  func goOn() {
    context.loop.execute { [self] in look() }
  }

  private func look() {
    var found = findings.take() ?? begin()
    var work = 0
    while work < Self.together, let (subject, loopState) = loopStates.popFirst() {
      let topic = look(at: loopState)
      work += loopState.subscriptions.count + loopState.publications.count
      work += (topic.subscriptions.count + topic.publications.count + 1) * Self.description
      found.topics.append((subject, topic))
    }
    while work < Self.together, let connection = connections.popFirst() {
      let snapshot = connection.snapshot
      work += Self.description
      guard gathering.request.filter.selects(snapshot) else { continue }
      found.selectedConnections += 1
      if found.connections.count < gathering.request.connections { found.connections.append(snapshot) }
    }
    findings = found
    if !loopStates.isEmpty || !connections.isEmpty { goOn() }
  }

  private func begin() -> LoopFindings {
    var found = LoopFindings()
    found.time = context.loop.wallClock
    found.uptime = (context.loop.now - gathering.startedAt).clampedMilliseconds
    let own = context.ownConnections
    found.loop = LoopSnapshot(connections: context.connections.count - own, turns: context.turns)
    found.loop.ownConnections = own
    found.loop.doors = context.doors
    found.latency = context.latency
    let request = gathering.request
    let clients = own == 0 ? context.connections : context.connections.filter { !$0.isOwnPart }
    if request.filter.isEmpty || request.connections == 0 {
      connections = first(request.connections, of: clients)[...]
    } else {
      connections = clients.sorted { $0.id < $1.id }[...]
    }
    return found
  }

  /// The connections with the lowest numbers.
  private func first(_ limit: Int, of connections: [Connection]) -> [Connection] {
    guard connections.count > limit else { return connections }
    guard limit > 0 else { return [] }
    let last = connections.map(\.id).sorted()[limit - 1]
    return connections.filter { $0.id <= last }
  }

  private func look(at loopState: TopicLoopState) -> TopicFindings {
    let now = context.loop.now
    loopState.countHolds()
    var found = TopicFindings(traffic: loopState.traffic)
    for publication in loopState.publications { found.add(publication, at: now) }
    for consumer in loopState.subscriptions {
      if let standing = consumer.standing { found.add(standing, at: now) }
    }
    listSubscriptions(of: loopState, in: &found)
    listPublications(of: loopState, in: &found)
    return found
  }

  /// Lists subscriptions up to the limit: those that block producers first, then those with lag.
  private func listSubscriptions(of loopState: TopicLoopState, in found: inout TopicFindings) {
    let now = context.loop.now
    let limit = min(gathering.request.subscriptionsPerTopic, left)
    let hold = loopState.topic.isPaced ? loopState.topic.holds.withLock { $0.open } : nil
    for rank in loopState.topic.isPaced ? 0...2 : 1...2 {
      for consumer in loopState.subscriptions {
        guard found.subscriptions.count < limit else { return }
        guard let standing = consumer.standing else { continue }
        let isHolding = loopState.topic.isPaced && consumer.isHolding(open: hold)
        guard rank == (isHolding ? 0 : standing.lag > 0 ? 1 : 2),
          let info = consumer.described(open: hold, at: now)
        else {
          continue
        }
        left -= 1
        found.subscriptions.append(
          SubscriptionSnapshot(
            info: info, identity: consumer.identity, lag: standing.lag,
            blocked: consumer.blockedSince.map { max((now - $0).clampedMilliseconds, 1) } ?? 0,
            starved: standing.starvedSince.map { max((now - $0).clampedMilliseconds, 1) } ?? 0,
            group: (consumer as? GroupStream)?.group.name,
            door: (consumer as? any ClientStream)?.door ?? .native))
      }
    }
  }

  /// Lists publications up to the limit, those that wait for demand first.
  private func listPublications(of loopState: TopicLoopState, in found: inout TopicFindings) {
    let limit = min(gathering.request.publicationsPerTopic, left)
    for waits in [true, false] {
      for publication in loopState.publications {
        guard found.publications.count < limit else { return }
        guard waits == (publication.heldUpSince != nil) else { continue }
        left -= 1
        found.publications.append(
          PublicationSnapshot(
            info: publication.info, identity: publication.identity,
            door: (publication as? any ClientStream)?.door))
      }
    }
  }
}

extension Connection {
  /// The most streams of which the topics are listed.
  private static let shownStreams = 64
  private static let listedTopics = 10

  private var shownTopics: [String] {
    let names = streams.session.numbers.prefix(Self.shownStreams).compactMap { number -> String? in
      switch streams.session.object(number) {
      case let stream as SubscriptionStream: stream.topic.name
      case let stream as GroupStream: stream.group.topic.name
      case let stream as PatternStream: stream.pattern.description
      case let stream as PublicationStream: stream.topic.name
      case let stream as RelayedSubscription: stream.topic
      case let stream as RelayedPublication: stream.topic
      default: nil
      }
    }
    return Array(Set(names).sorted().prefix(Self.listedTopics))
  }

  /// The connection's part of a snapshot. On its loop.
  var snapshot: ConnectionSnapshot { snapshot(topics: shownTopics) }

  func snapshot(topics: [String]) -> ConnectionSnapshot {
    ConnectionSnapshot(
      id: id, client: client.name, identity: client.identity.name, peer: client.peer.description,
      security: client.security.map { "\($0.version) \($0.cipher)" } ?? "",
      age: (context.loop.now - acceptedAt).clampedMilliseconds,
      subscriptions: Int(streams.counts.subscriptions),
      publications: Int(streams.counts.publications), buffered: buffered,
      received: traffic.received, sent: traffic.sent, topics: topics)
  }
}
