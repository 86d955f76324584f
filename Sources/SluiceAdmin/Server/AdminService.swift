import SluiceAccess
import SluiceBroker
import SluiceCommand
import SluiceIO
import SluiceWire

/// The answer to a request.
enum Reply: Sendable {
  case response(HTTPResponse)
  case events(Watcher)

  static func problem(_ problem: AdminProblem) -> Reply { .response(problem.response) }
}

/// Answers requests: authenticates the visitor, checks the permissions, and asks the broker.
///
/// Unchecked: belongs to its loop.
final class AdminService: @unchecked Sendable {
  typealias Completion = @Sendable (Reply) -> Void

  let feed: EventFeed
  let sampler: BrokerSampler
  private let source: any AdminSource
  private let loop: any EventLoop
  private let options: AdminOptions
  private let actions = ActionCheck()
  private var identities = IdentityCache()
  private var selection: TopicSelection
  private var consumers: ConsumerSelection

  init(_ source: any AdminSource, on loop: any EventLoop, _ options: AdminOptions) {
    self.source = source
    self.loop = loop
    self.options = options
    let sampler = BrokerSampler(source, on: loop, options)
    self.sampler = sampler
    feed = EventFeed(source, on: loop, options) {
      sampler.isOn ? (sampler.problems, sampler.problemKinds) : nil
    }
    selection = TopicSelection(limit: options.topics)
    consumers = ConsumerSelection(groups: options.groups, cursors: options.cursors)
  }

  /// Returns whether the head of a request suffices to reject it, so that its body needn't be read.
  func refusesHead(of request: AdminRequest) -> Bool {
    do throws(AdminProblem) {
      _ = try route(of: request)
      return false
    } catch {
      return true
    }
  }

  private func route(of request: AdminRequest) throws(AdminProblem) -> Route {
    let route = try Route(request, options.limits, actions: options.actions)
    try HostCheck.check(request, route, isLocal: options.isLocal, hasTLS: options.tls != nil)
    if case .action(let action) = route { try ActionCheck.check(request, action, options.limits) }
    return route
  }

  /// - Parameter completion: called once, on the loop, and possibly before this returns; not called when the broker stops before it has answered.
  func answer(_ request: AdminRequest, completion: @escaping Completion) {
    do throws(AdminProblem) {
      let route = try route(of: request)
      if let status = status(route) { return completion(.response(status)) }
      guard source.stage != .starting else { throw .unavailable("the broker is starting") }
      try identify(request) { [self] result in
        do throws(AdminProblem) {
          let identity = try result.get()
          try Authorization.check(identity, route)
          try perform(route, request, as: identity, completion)
        } catch {
          completion(.problem(error))
        }
      }
    } catch {
      completion(.problem(error))
    }
  }

  /// The answer of a route without authentication; nil for other routes.
  private func status(_ route: Route) -> HTTPResponse? {
    switch (route, source.stage) {
    case (.health, _): .text("ok")
    case (.readiness(let needsStorage), .ready): readiness(needsStorage: needsStorage)
    case (.readiness, .starting): .text("starting", status: 503)
    case (.readiness, .stopping): .text("stopping", status: 503)
    default: nil
    }
  }

  /// A broker whose store accepts no records is still ready: it serves subscribers, topics in memory, and the requests by which an operator makes room. An
  /// orchestrator, which reads only the status, would cut all of these off. The body names the failure, and with `?storage=required` the status is 503. A
  /// broker whose store was removed isn't ready: it must be restarted.
  ///
  /// A node that isn't in its cluster, or has no valid lease, isn't ready: another node serves its clients.
  private func readiness(needsStorage: Bool) -> HTTPResponse {
    if let cluster = source.cluster, !cluster.info.unreadiness.isEmpty {
      return .text("not ready: \(cluster.info.unreadiness)", status: 503)
    }
    guard let storage = source.storage, storage.state != .working else { return .text("ready") }
    let seconds = storage.since / 1000
    let what = storage.state == .full ? "full" : "failing"
    let reason =
      "storage \(what) for \(seconds) s, \(storage.waiting) publisher\(storage.waiting == 1 ? "" : "s") waiting: \(storage.message)"
    return needsStorage || storage.isRemoved
      ? .text(reason, status: 503) : .text("ready, degraded: \(reason)")
  }

  // MARK: Authentication

  private func identify(
    _ request: AdminRequest, _ body: @escaping @Sendable (Result<Identity, AdminProblem>) -> Void
  ) throws(AdminProblem) {
    guard source.authenticatesClients else { return body(.success(.anonymous)) }
    let credentials = try Authorization.credentials(request.authorization)
    if let known = identities[credentials, at: loop.now] {
      if let identity = source.reconsider(known), !identity.hasExpired(at: loop.wallClock) {
        return body(.success(identity))
      }
      identities.remove(credentials)
    }
    source.authenticate(credentials, from: request.peer) { [self] result in
      loop.execute { [self] in
        if case .success(let identity) = result { identities.add(identity, for: credentials, at: loop.now) }
        body(result.mapError(Authorization.problem))
      }
    }
  }

  // MARK: Routes

  private func perform(
    _ route: Route, _ request: AdminRequest, as identity: Identity, _ completion: @escaping Completion
  ) throws(AdminProblem) {
    let limits = options.limits
    switch route {
    case .health, .readiness: break
    case .dashboard:
      completion(.response(options.actions ? Dashboard.response(for: identity, actions) : Dashboard.response))
    case .action(let action):
      try actions.checkToken(request, of: identity)
      try perform(action, request, as: identity, completion)
    case .metrics(let format):
      var request = SnapshotRequest.summary(topics: .max)
      request.consumersPerTopic = max(options.groups, 1)
      // The cursor with the largest lag is needed for the topic's line.
      request.cursorsPerTopic = max(options.cursors, 1)
      snapshot(request, completion) { [self] snapshot in
        let program = ProgramNumbers(
          droppedLogLines: source.droppedLogLines, refusedWatchers: feed.refused)
        let text = MetricsPage.text(
          snapshot, &selection, &consumers, program, ProcessNumbers.now,
          version: options.version, format, cluster: source.cluster)
        return HTTPResponse(type: format.contentType, body: Array(text.utf8))
      }
    case .broker:
      snapshot(.summary(topics: 0), completion) { [source, options] snapshot in
        .json(BrokerJSON.object(snapshot, of: BrokerIdentity(of: source, version: options.version)))
      }
    case .topics(let after, let limit):
      let request = SnapshotRequest(
        topics: .max, subscriptionsPerTopic: 1, publicationsPerTopic: 0, connections: 0,
        consumersPerTopic: 1)
      let node = source.cluster?.info.name
      snapshot(request, completion) { .json(TopicJSON.list($0, after: after, limit: limit, node: node)) }
    case .topic(let name): topic(name, completion)
    case .connections(let filter, let limit):
      var request = SnapshotRequest.summary(topics: 0)
      request.filter = SnapshotFilter(filter)
      request.connections = limit
      snapshot(request, completion) { snapshot in
        .json([
          "connections": .array(snapshot.connections.prefix(limit).map(BrokerJSON.connection)),
          "count": .exact(snapshot.connectionCount), "selected": .exact(snapshot.selectedConnections),
        ])
      }
    case .consumers(let topic, let filter, let limit):
      var request = SnapshotRequest(
        topic: topic, topics: .max, subscriptionsPerTopic: 0, publicationsPerTopic: 0, connections: 0,
        consumersPerTopic: limit)
      request.filter = SnapshotFilter(filter)
      snapshot(request, completion) { [self] snapshot in
        if let topic, snapshot.topics.isEmpty { return absence(of: topic).response }
        return .json(ConsumerJSON.list(snapshot, limit: limit))
      }
    case .settings: completion(.response(.json(SettingsJSON.list(source.settings))))
    case .users(let filter, let limit):
      guard let policy = source.access else {
        throw .notFound("clients don't authenticate at this broker: see sluiced --users and --token-keys")
      }
      completion(.response(.json(AccessJSON.list(policy, filter: filter, limit: limit))))
    case .cluster:
      guard let cluster = source.cluster else {
        throw .notFound("this broker isn't a node of a cluster: see sluiced --cluster")
      }
      completion(.response(.json(ClusterJSON.object(cluster))))
    case .problems:
      guard sampler.isOn else {
        throw .notFound("this broker looks for no problems: see --admin-history")
      }
      completion(
        .response(
          .json([
            "time": .number(sampler.time), "problems": .array(sampler.problems.map(ProblemJSON.object)),
            "kinds": .array(sampler.problemKinds.map(ProblemJSON.object)),
          ])))
    case .history(let topic, let seconds, let step):
      completion(try history(of: topic, seconds: seconds, step: step))
    case .records(let topic, let query): records(of: topic, query, completion)
    case .events(let topic):
      guard request.method == "GET" else { return completion(.response(.text(""))) }
      guard let watcher = feed.watch(topic, as: identity) else {
        throw .unavailable("\(limits.watchers) watch already, which is the limit; try again later")
      }
      completion(.events(watcher))
    }
  }

  private func perform(
    _ action: AdminAction, _ request: AdminRequest, as identity: Identity,
    _ completion: @escaping Completion
  ) throws(AdminProblem) {
    let change = try action.request(request.body)
    source.administer(change, as: identity, from: request.peer) { [self] result in
      loop.execute { [self] in
        if case .failure(let error) = result { return completion(.problem(AdminProblem(error))) }
        guard let name = action.changedTopic else {
          return completion(.response(.json(["done": .flag(true)])))
        }
        topic(name, completion)
      }
    }
  }

  private func topic(_ name: String, _ completion: @escaping Completion) {
    let limits = options.limits
    let request = SnapshotRequest(
      topic: name, subscriptionsPerTopic: limits.streams, publicationsPerTopic: limits.streams,
      connections: 0, consumersPerTopic: limits.consumers)
    snapshot(request, completion) { [self] snapshot in
      let topic = snapshot.topics.first { $0.summary.topic == name }
      return topic.map { .json(TopicJSON.detailed($0)) } ?? absence(of: name).response
    }
  }

  private func history(of topic: String?, seconds: Int, step: Int?) throws(AdminProblem) -> Reply {
    guard options.history.length > 0 else {
      throw .notFound("this broker keeps no history: see --admin-history")
    }
    let now = max(sampler.time, loop.wallClock)
    let range = (now - Int64(seconds) * 1000)..<now + 1
    let history = sampler.history
    let chart = history.chart(of: topic, in: range, step: step.map { Int64($0) * 1000 }, now: now)
    guard let chart else {
      throw .notFound(
        "topic \(topic ?? "") has no history: only the \(options.history.topics) most active topics have any")
    }
    let json = HistoryJSON.object(chart, of: topic, in: range)
    return .response(.json(topic == nil ? json + HistoryJSON.facts(history) : json))
  }

  /// The reason why a topic can't be shown: it doesn't exist, or another node of the cluster owns it.
  private func absence(of topic: String) -> AdminProblem {
    source.cluster?.info.otherOwner(of: topic).map { .elsewhere(topic, $0) } ?? .unknownTopic(topic)
  }

  private func snapshot(
    _ request: SnapshotRequest, _ completion: @escaping Completion,
    _ body: @escaping @Sendable (BrokerSnapshot) -> HTTPResponse
  ) {
    source.snapshot(request) { [loop] assemble in
      loop.execute { completion(.response(body(assemble()))) }
    }
  }

  private func records(of topic: String, _ query: RecordQuery, _ completion: @escaping Completion) {
    let limit = options.limits.payloadBytes
    source.records(of: topic, query, on: loop) { [self] result in
      switch result {
      case .success(let page): completion(.response(.json(RecordJSON.page(page, of: topic, limit: limit))))
      case .failure(let error) where error.code == .unknownTopic: completion(.problem(absence(of: topic)))
      case .failure(let error): completion(.problem(AdminProblem(error)))
      }
    }
  }
}

extension SnapshotRequest {
  /// A request without the streams of topics, and without connections.
  fileprivate static func summary(topics: Int) -> Self {
    Self(topics: topics, subscriptionsPerTopic: 0, publicationsPerTopic: 0, connections: 0)
  }
}
