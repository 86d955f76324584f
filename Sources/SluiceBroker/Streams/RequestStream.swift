import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceSession
import SluiceTopics
import SluiceWire

/// One request of a client, up to its answer. Belongs to its connection's loop.
///
/// What has to be on disk before the answer, or is asked of the store, may end after the client has cancelled the request: then nothing is answered.
final class RequestStream: ServerStream {
  /// A page fits the smallest frame that a client may take: a summary has 1,333 bytes at the most.
  private static let topicsPerPage = 40
  private static let cursorsPerPage = 200

  private let stream: UInt32
  private unowned let connection: Connection

  private var context: LoopContext { connection.context }
  private var registry: TopicRegistry { context.core.registry }

  init(_ stream: UInt32, on connection: Connection) {
    self.stream = stream
    self.connection = connection
  }

  var kind: StreamKind { .request }
  func release() {}
  func reconsider() throws(WireError) {}
  func isDrained(isPatient: Bool) -> Bool { true }

  /// Does what the client asks for. The connection tells the client the error that is thrown.
  func perform(_ action: ServerAction) throws(WireError) {
    switch action {
    case .createTopic(_, let frame): create(frame)
    case .showTopic(_, let name): describe(try connection.topic(name, for: .topicShow))
    case .listTopics(_, let after, let limit):
      let (page, more) = connection.listTopics(after: after, limit: min(Int(limit), Self.topicsPerPage))
      answer(Topics(topics: page, more: more))
    case .deleteTopic(_, let name):
      administer(.deleteTopic, of: name) { () throws(WireError) in
        try connection.require(.topicDelete, on: name)
        confirm(try registry.delete(name))
        return true
      }
    case .connectTopic(_, let name, let isConnected):
      administer(isConnected ? .connectTopic : .disconnectTopic, of: name) { () throws(WireError) in
        try connection.topic(name, for: isConnected ? .topicConnect : .topicDisconnect).connect(isConnected)
        answer(Done())
        return true
      }
    case .listCursors(_, let topic, let after, let limit):
      try listCursors(of: topic, after: after, limit: min(Int(limit), Self.cursorsPerPage))
    case .moveCursor(_, let frame): move(frame)
    case .deleteCursor(_, let topic, let name): deleteCursor(name, of: topic)
    case .renew(_, let credentials): connection.renew(stream, credentials)
    default: break
    }
  }

  // MARK: Topics

  private func create(_ frame: TopicCreate) {
    administer(.createTopic, of: frame.topic) { () throws(WireError) in
      try connection.require(.topicCreate, on: frame.topic)
      if let there = registry.find(frame.topic) { try connection.requireInbox(there, for: .topicCreate) }
      let topic = try registry.create(frame.topic, frame.settings, by: connection.quota)
      connection.workBudget.spend(connection.quota.takeTold(), of: .watchers)
      try connection.requireInbox(topic, for: .topicCreate)
      topic.failWhenProducersStayLost(on: context.topics)
      whenCommitted(topic) { $0.describe(topic) }
      return true
    }
  }

  private func describe(_ topic: Topic) {
    let attached = topic.attached
    connection.workBudget.spend(attached.subscriptions + attached.publications, of: .attachments)
    let continuation = connection.continuation(of: stream)
    TopicInspection(topic, showing: connection.shownPeers(of: topic), at: context.loop.now).run { info in
      continuation.resume { (request: RequestStream) in request.answer(info) }
    }
  }

  // MARK: Cursors

  private func listCursors(of name: String, after: String, limit: Int) throws(WireError) {
    let topic = try connection.topic(name, for: .cursorList)
    connection.workBudget.spend(topic.cursorCount, of: .cursors)
    topic.forgetGroups(idleFor: context.core.configuration.limits.cursorMemory, now: context.loop.now)
    let (page, more) = topic.cursors(after: after, limit: limit, now: context.loop.now)
    answer(Cursors(cursors: page, more: more))
  }

  private func move(_ frame: CursorMove) {
    administer(.moveCursor(frame.name), of: frame.topic) { () throws(WireError) in
      let topic = try connection.topic(frame.topic, for: .cursorMove)
      let isAsked = connection.findStart(frame.start, of: topic, connection.continuation(of: stream)) {
        [stream] connection, start in
        var frame = frame
        frame.start = start
        connection.object(RequestStream.self, on: stream)?.move(frame)
      }
      if isAsked { return false }
      if !topic.moveGroup(frame.name, to: frame.start, on: context.topics) {
        try topic.moveCursor(
          frame.name, to: StartPosition(frame.start), now: context.loop.now, wallClock: context.loop.wallClock
        )
      }
      confirm(topic, of: frame.name)
      return true
    }
  }

  private func deleteCursor(_ name: String, of topic: String) {
    administer(.deleteCursor(name), of: topic) { () throws(WireError) in
      let topic = try connection.topic(topic, for: .cursorDelete)
      if !topic.deleteGroup(name, on: context.topics) { try topic.deleteCursor(name, now: context.loop.now) }
      confirm(topic, of: name)
      return true
    }
  }

  // MARK: Answers

  func answer(_ frame: some Frame) {
    connection.answer(connection.session.request(on: stream), frame)
  }

  /// Answers DONE when what was done to the topic is on disk.
  ///
  /// - Parameter name: of the cursor or group to which it was done; nil for the topic itself.
  private func confirm(_ topic: Topic, of name: String? = nil) {
    whenCommitted(topic, of: name) { $0.answer(Done()) }
  }

  /// Calls `body` when all that has happened to the topic is on disk, if it is durable; unless the request is cancelled meanwhile.
  private func whenCommitted(
    _ topic: Topic, of name: String? = nil, _ body: @escaping @Sendable (RequestStream) -> Void
  ) {
    guard topic.storage != nil else { return body(self) }
    let continuation = connection.continuation(of: stream)
    topic.whenCommitted(of: name) { continuation.resume($0, body) }
  }

  /// Runs an administrative request and reports it, for the audit log, however it ends; a missing permission is reported already.
  ///
  /// - Parameter body: returns false if it has to wait, and is done later.
  private func administer(
    _ action: BrokerEvent.Administration, of topic: String, _ body: () throws(WireError) -> Bool
  ) {
    do {
      guard try body() else { return }
      connection.report(.administered(connection.asClient, action, topic: topic, refusal: nil))
    } catch {
      if error.code != .permissionDenied {
        connection.report(.administered(connection.asClient, action, topic: topic, refusal: error))
      }
      connection.refuse(stream, Fault(error))
    }
  }
}
