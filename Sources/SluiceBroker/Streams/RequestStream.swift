import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceSession
import SluiceTopics
import SluiceWire
import Synchronization

/// One request of a client, until its answer. Belongs to its connection's loop.
///
/// A commit or a look-up in the store may complete after the client has cancelled the request. Then the request isn't answered.
final class RequestStream: ServerStream {
  /// A summary takes at most 1,333 bytes, so that a page fits the smallest frame that a client may accept.
  private static let topicsPerPage = 40
  /// A cursor takes at most 370 bytes.
  static let cursorsPerPage = 170
  /// A connection takes at most 1,100 bytes.
  private static let connectionsPerPage = 50

  let stream: UInt32
  unowned let streams: StreamMultiplexer

  private var registry: TopicRegistry { streams.core.registry }

  init(_ stream: UInt32, on streams: StreamMultiplexer) {
    self.stream = stream
    self.streams = streams
  }

  var kind: StreamKind { .request }
  func release() {}
  func reconsider() throws(WireError) {}
  func isDrained(isPatient: Bool) -> Bool { true }

  /// Performs the request. The connection sends a thrown error to the client.
  func perform(_ action: ServerAction) throws(WireError) {
    switch action {
    case .createTopic(_, let frame):
      administer { (desk) throws(WireError) in
        try desk.create(frame)
      } _: {
        $0.describe($1)
      }
    case .showTopic(_, let name): describe(try streams.client.topic(name, for: .topicShow))
    case .listTopics(_, let after, let limit):
      let (page, more) = streams.client.listTopics(after: after, limit: min(Int(limit), Self.topicsPerPage))
      answer(Topics(topics: page, more: more))
    case .deleteTopic(_, let name):
      administer { (desk) throws(WireError) in
        try desk.delete(name)
      } _: { request, _ in
        request.answer(Done())
      }
    case .connectTopic(_, let name, let isConnected):
      administer(isConnected ? .connectTopic : .disconnectTopic, of: name) { () throws(WireError) in
        try streams.client.topic(name, for: isConnected ? .topicConnect : .topicDisconnect).connect(
          isConnected)
        answer(Done())
        return true
      }
    case .listCursors(_, let topic, let after, let limit):
      try listCursors(of: topic, after: after, limit: min(Int(limit), Self.cursorsPerPage))
    case .moveCursor(_, let frame): move(frame)
    case .deleteCursor(_, let topic, let name): deleteCursor(name, of: topic)
    case .setTopic(_, let frame):
      administer { (desk) throws(WireError) in
        try desk.set(frame)
      } _: {
        $0.describe($1)
      }
    case .trimTopic(_, let frame):
      administer { (desk) throws(WireError) in
        try desk.trim(frame)
      } _: {
        $0.describe($1)
      }
    case .listStates(_, let frame): try listStates(frame)
    case .restoreStates(_, let frame): restore(frame, frame.entries.reader())
    case .listConnections(_, let after, let limit):
      try listConnections(after: after, limit: min(Int(limit), Self.connectionsPerPage))
    case .closeConnection(_, let connection): close(connection)
    case .showBroker: try showBroker()
    case .showCluster(_, let frame): try showCluster(frame)
    case .drainNode(_, let frame): drain(frame)
    case .moveShard(_, let frame): move(frame)
    case .renew(_, let credentials): renew(credentials)
    default: break
    }
  }

  // MARK: Topics

  private func describe(_ topic: Topic) {
    let attached = topic.attached
    streams.client.workBudget.spend(attached.subscriptions + attached.publications, of: .attachments)
    streams.client.workBudget.spend(topic.cursorCount, of: .cursors)
    let continuation = streams.continuation(of: stream)
    let inspection = TopicInspection(
      topic, showing: streams.client.shownPeers(of: topic),
      listsConsumers: streams.client.mayListConsumers(of: topic), at: streams.loop.now,
      wallClock: streams.loop.wallClock)
    inspection.run { info in
      continuation.resume { (request: RequestStream) in request.answer(info) }
    }
  }

  // MARK: The broker

  private func listConnections(after: UInt64, limit: Int) throws(WireError) {
    try streams.client.requireBroker()
    streams.client.workBudget.spend(streams.core.metrics[.connections], of: .attachments)
    let continuation = streams.continuation(of: stream)
    ask(
      .list(after: after, limit: limit) { page, more in
        continuation.resume { (request: RequestStream) in
          request.answer(Connections(connections: page, more: more))
        }
      })
  }

  /// Closes a connection. The audit line is written when the request is done.
  private func close(_ connection: UInt64) {
    let action = BrokerEvent.Administration.closeConnection(connection)
    // `requireBroker` reports a missing permission.
    do { try streams.client.requireBroker() } catch { return streams.refuse(stream, Fault(error)) }
    let continuation = streams.continuation(of: stream)
    let (core, client) = (streams.core, streams.client)
    let isSelf = connection == client.connection
    let unknown = WireError.unknownConnection(connection)
    // A client that closes its own connection can't get the answer, so the request is reported first.
    if isSelf { client.report { .administered($0, action, topic: "", refusal: nil) } }
    ask(
      .close(connection, .connectionClosedByOperator) { isClosed in
        if isClosed { core.metrics.add(.closedByOperators) }
        continuation.resume { (request: RequestStream) in
          request.streams.client.report {
            .administered($0, action, topic: "", refusal: isClosed ? nil : unknown)
          }
          if isClosed {
            request.answer(Done())
          } else {
            request.streams.refuse(request.stream, Fault(unknown))
          }
        }
      })
  }

  private func ask(_ request: ConnectionRequest) {
    streams.core.connectionRequests.withLock { $0 }?(request)
  }

  private func showBroker() throws(WireError) {
    try streams.client.requireBroker()
    streams.client.workBudget.spend(registry.count, of: .names)
    let gathering = BrokerGathering(streams.core, at: streams.loop.now)
    let continuation = streams.continuation(of: stream)
    TopicRound.run(over: registry, on: streams.loop) {
      gathering.look(at: $0)
    } completion: { [core = streams.core, now = streams.loop.now] in
      let requests = core.connectionRequests.withLock { $0 }
      requests?(
        .problems(now: now) { found in
          continuation.resume { (request: RequestStream) in
            request.answer(gathering.info(found, wallClock: request.streams.loop.wallClock))
          }
        })
    }
  }

  // MARK: Cursors

  private func listCursors(of name: String, after: String, limit: Int) throws(WireError) {
    let topic = try streams.client.topic(name, for: .cursorList)
    streams.client.workBudget.spend(topic.cursorCount, of: .cursors)
    topic.forgetGroups(idleFor: streams.core.configuration.limits.cursorMemory, now: streams.loop.now)
    let (page, more) = topic.cursors(after: after, limit: limit, now: streams.loop.now)
    let unmeasured = topic.unmeasured(page)
    guard let storage = topic.storage, !unmeasured.isEmpty else {
      return answer(Cursors(cursors: topic.measured(page, wallClock: streams.loop.wallClock), more: more))
    }
    let continuation = streams.continuation(of: stream)
    storage.findPlaces(unmeasured) {
      continuation.resume { (request: RequestStream) in
        let cursors = topic.measured(page, wallClock: request.streams.loop.wallClock)
        request.answer(Cursors(cursors: cursors, more: more))
      }
    }
  }

  private func move(_ frame: CursorMove) {
    streams.attempt(stream) { () throws(WireError) in
      guard let (time, storage) = try administration.unknownStart(of: frame) else {
        return confirm(try administration.move(frame), of: frame.name)
      }
      let continuation = streams.continuation(of: stream)
      storage.service.find(time, in: storage) { offset in
        let move = CursorMove(topic: frame.topic, name: frame.name, to: .offset(offset))
        continuation.resume { (request: RequestStream) in request.move(move) }
      }
    }
  }

  private func deleteCursor(_ name: String, of topic: String) {
    streams.attempt(stream) { () throws(WireError) in
      confirm(try administration.delete(CursorDelete(topic: topic, name: name)), of: name)
    }
  }

  // MARK: States

  /// The approximate size of a page of states in bytes; a longer single state has a page of its own.
  private static let statePage = 48 << 10

  private func listStates(_ frame: StateList) throws(WireError) {
    let topic = try streams.client.topic(frame.topic, for: .stateList)
    streams.client.workBudget.spend(
      frame.kind == .producer ? topic.knownProducerCount : topic.cursorCount, of: .cursors)
    let page = try topic.states(
      frame.kind, after: frame.after, bytes: Self.statePage, at: streams.loop.clocks)
    let size = page.encoded(stream: stream).count
    guard size <= max(streams.largestBatch, Limits.smallestFrame) else {
      throw WireError(
        .limitReached,
        "a group of topic \(frame.topic) has a state of \(size) bytes, which is more than the client's longest frame"
      )
    }
    // Answers after a commit: by then, the records that the producers' sequences count can be read.
    whenCommitted(topic) { $0.answer(page) }
  }

  /// The most states to restore in one turn.
  private static let restoredTogether = 1_024

  /// Restores states, a part in each of the connection's turns.
  ///
  /// - Parameter states: the states that remain.
  private func restore(_ frame: StateRestore, _ states: StateEntries.Reader) {
    administer(.restoreStates(frame.entries.count), of: frame.topic) { () throws(WireError) in
      let topic = try streams.client.topic(frame.topic, for: .stateRestore)
      var states = states
      let part = states.next(Self.restoredTogether)
      streams.client.workBudget.spend(part.count, of: .cursors)
      try topic.restore(part, of: frame, by: streams.client.keeper, on: streams.topics) {
        name throws(WireError) in try streams.client.require(.publishOpen, on: name)
      }
      guard states.left == 0 else {
        let token = streams.session.token(of: stream)
        streams.goOnLater { [self, states] in
          if streams.session.isCurrent(token) { restore(frame, states) }
        }
        return false
      }
      confirm(topic)
      return true
    }
  }

  // MARK: Credentials

  private func renew(_ credentials: Credentials) {
    guard streams.core.authenticator != nil else {
      streams.session.renewed()
      return answer(Authenticated(identity: ""))
    }
    let (request, reference) = (streams.session.request(on: stream), streams.reference)
    streams.client.verify(credentials) { job in
      reference.execute { _ in job() }
    } _: { [unowned streams] finding in
      streams.session.renewed()
      // If the client has cancelled the request, its credentials aren't renewed.
      guard let request, streams.session.isCurrent(request) else { return }
      streams.attempt(request.stream) { () throws(WireError) in
        let identity = try streams.client.renewed(finding, credentials)
        streams.answer(request, Authenticated(identity: identity.name, expires: identity.wireExpiry))
        streams.adopt(identity)
      }
    }
  }

  // MARK: Answers

  func answer(_ frame: some Frame) {
    streams.answer(streams.session.request(on: stream), frame)
  }

  /// Answers DONE when the change of the topic is on disk.
  ///
  /// - Parameter name: the changed cursor or group; nil for a change of the topic itself.
  private func confirm(_ topic: Topic, of name: String? = nil) {
    whenCommitted(topic, of: name) { $0.answer(Done()) }
  }

  /// Calls `body` when all changes of a durable topic so far are on disk, at once for a topic in memory; not if the request is cancelled meanwhile.
  private func whenCommitted(
    _ topic: Topic, of name: String? = nil, _ body: @escaping @Sendable (RequestStream) -> Void
  ) {
    guard topic.storage != nil else { return body(self) }
    let continuation = streams.continuation(of: stream)
    topic.whenCommitted(of: name) { continuation.resume($0, body) }
  }

  private var administration: TopicAdministration {
    TopicAdministration(by: streams.client, on: streams.topics)
  }

  /// Changes a topic, and calls `body` when the change is on disk.
  private func administer(
    _ change: (TopicAdministration) throws(WireError) -> Topic,
    _ body: @escaping @Sendable (RequestStream, Topic) -> Void
  ) {
    do {
      let topic = try change(administration)
      whenCommitted(topic) { body($0, topic) }
    } catch {
      streams.refuse(stream, Fault(error))
    }
  }

  /// Runs a request about a cursor, a group or the topic's producers, and writes its audit line.
  ///
  /// - Parameter body: returns false if the request continues later and is reported then.
  private func administer(
    _ action: BrokerEvent.Administration, of topic: String, _ body: () throws(WireError) -> Bool
  ) {
    do {
      if try body() { administration.report(action, of: topic) }
    } catch {
      administration.report(action, of: topic, refusal: error)
      streams.refuse(stream, Fault(error))
    }
  }
}
