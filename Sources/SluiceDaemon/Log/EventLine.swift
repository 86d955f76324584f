import SluiceAccess
import SluiceBroker
import SluiceCommand
import SluiceIO
import SluiceWire

/// The log line for an event of the broker.
struct EventLine {
  /// Lines of one kind share a limit.
  enum Kind: String {
    case opened = "opened connections"
    case closed = "closed connections"
    case authenticated = "authenticated clients"
    case notAuthenticated = "failed authentications"
    case ended = "expired and revoked credentials"
    case denied = "denied requests"
    case topic = "created and ended topics"
    case administered = "administration"
    case refused = "requests beyond a limit"
    case memory = "memory"
  }

  let kind: Kind
  var level: LogLevel
  var message: String
  var fields: [(key: String, value: JSON)]
  /// Whether it is about authentication, authorisation or administration.
  var isAudit = false

  private init(
    _ kind: Kind, _ level: LogLevel, _ message: String, _ fields: [(key: String, value: JSON)],
    isAudit: Bool = false
  ) {
    self.kind = kind
    self.level = level
    self.message = message
    self.fields = fields
    self.isAudit = isAudit
  }

  /// The most lines per second; nil for events that only authorised clients cause, which are all logged.
  var limit: Int? {
    switch kind {
    case .memory: nil
    case .authenticated, .ended, .administered: isAudit ? nil : 20
    case .notAuthenticated, .denied: isAudit ? 100 : 20
    case .opened, .closed, .topic, .refused: 20
    }
  }

  init(leftOut count: Int, of kind: Kind) {
    self.init(
      kind, .warning, "lines were left out of the log",
      [("count", .number(count)), ("about", .text(kind.rawValue))],
      isAudit: kind == .notAuthenticated || kind == .denied)
  }

  // MARK: Events

  init(_ event: BrokerEvent) {
    switch event {
    case .opened(let client):
      self.init(.opened, .debug, "a client has connected", Self.fields(client))
    case .closed(let client, let reason, let code, let milliseconds):
      var fields = Self.fields(client) + [("cause", Self.text(reason))]
      if let code { fields.append(("code", .text(code.description))) }
      self.init(
        .closed, .info, "a connection was closed",
        fields + [("ms", .number(milliseconds))])
    case .closedForBuffering(let connection, let client, let bytes):
      self.init(
        .refused, .warning,
        "a connection was closed: all connections together buffered more than --max-buffered, and this one the most",
        [
          ("connection", .number(connection)), ("client", Self.text(client)),
          ("bytes", .number(bytes)),
        ])
    case .authenticated(let client, let proof, let isRenewal):
      self.init(
        audit: .authenticated, .info,
        isRenewal ? "a client has renewed its credentials" : "a client has authenticated", client,
        isRenewal ? "renew" : "authenticate", "done", Self.fields(proof))
    case .notAuthenticated(let client, let claim, let error, let isRenewal):
      self.init(
        audit: .notAuthenticated, .warning, "a client failed to authenticate", client,
        isRenewal ? "renew" : "authenticate", "refused", [("claim", Self.text(claim))] + Self.fields(error))
    case .expired(let client):
      self.init(audit: .ended, .info, "a client's credentials have expired", client, "stay", "ended")
    case .revoked(let client):
      self.init(
        audit: .ended, .info, "a client's identity is no longer accepted", client, "stay", "revoked")
    case .denied(let client, let action, let topic):
      self.init(
        audit: .denied, .warning, "a client's request was denied", client, action, "denied",
        [("topic", Self.text(topic))])
    case .administered(let client, let action, let topic, let refusal):
      let cursor = action.cursor.map { [("cursor", Self.text($0))] } ?? []
      self.init(
        audit: .administered, .info,
        refusal == nil
          ? "a client has administered \(action.object)" : "a client couldn't administer \(action.object)",
        client, action.name, refusal == nil ? "done" : "refused",
        (action.target ?? [("topic", Self.text(topic))]) + cursor
          + (refusal.map { Self.fields($0) } ?? []))
    case .topicCreated(let client, let topic):
      self.init(
        .topic, Self.level(of: topic), "a topic was created",
        Self.fields(client) + [("topic", Self.text(topic))]
      )
    case .topicEnded(let client, let topic, let failure):
      var fields = Self.fields(client) + [("topic", Self.text(topic))]
      if let failure { fields.append(("code", .text(failure.description))) }
      self.init(
        .topic, Self.level(of: topic), failure == nil ? "a topic has completed" : "a topic has failed", fields
      )
    case .topicAbandoned(let topic):
      self.init(
        .topic, Self.level(of: topic), "a topic was deleted: no client used it, and auto-delete is on",
        [("topic", Self.text(topic))])
    case .deadLettersWait(let topic, let group, let deadLetters, let error):
      self.init(
        .topic, .warning,
        "a dead-letter topic refuses the records of a group; the group keeps them and tries again",
        [
          ("topic", Self.text(topic)), ("group", Self.text(group)), ("dead_letters", Self.text(deadLetters)),
        ] + Self.fields(error))
    case .refused(let client, let peer, let error):
      let fields = client.map { Self.fields($0) } ?? [("peer", Self.text(peer.description))]
      self.init(.refused, .warning, "a limit was reached", fields + Self.fields(error))
    case .memoryReached(let used, let ceiling):
      self.init(
        .memory, .warning,
        "memory is at its ceiling: producers of topics in memory are blocked; delete or trim topics, or raise --memory",
        [("used", .number(used)), ("ceiling", .number(ceiling))])
    case .memoryLeft(let used, let ceiling):
      self.init(
        .memory, .info, "there is memory again: producers continue",
        [("used", .number(used)), ("ceiling", .number(ceiling))])
    }
  }

  /// An audit line: the client, its action, the topic, and the outcome.
  private init(
    audit kind: Kind, _ level: LogLevel, _ message: String, _ client: BrokerEvent.Client?, _ action: String,
    _ outcome: String, _ more: [(key: String, value: JSON)] = []
  ) {
    self.init(
      kind, level, message,
      Self.fields(client) + [("action", .text(action)), ("outcome", .text(outcome))] + more, isAudit: true)
  }

  // MARK: Fields

  /// Debug for inboxes, since each client that makes requests has one for a short time.
  private static func level(of topic: String) -> LogLevel { TopicName.isInbox(topic) ? .debug : .info }

  private static func fields(_ client: BrokerEvent.Client?) -> [(key: String, value: JSON)] {
    guard let client else { return [] }
    return [
      ("connection", .number(client.connection)), ("identity", text(client.identity)),
      ("client", text(client.name)), ("peer", text(client.peer.description)),
    ]
  }

  private static func fields(_ error: WireError) -> [(key: String, value: JSON)] {
    [("code", .text(error.code.description)), ("cause", text(error.message))]
  }

  private static func fields(_ proof: Identity.Proof) -> [(key: String, value: JSON)] {
    switch proof {
    case .none: []
    case .password: [("proof", .text("password"))]
    case .token(let key): [("proof", .text("token")), ("key", text(key))]
    case .certificate: [("proof", .text("certificate"))]
    case .node: [("proof", .text("node"))]
    case .link: [("proof", .text("link"))]
    }
  }

  /// A name that a client has chosen, cut to a length that fits a line.
  static func text(_ text: String) -> JSON {
    let longest = 300
    guard text.utf8.count > longest else { return .text(text) }
    return .text(String(decoding: text.utf8.prefix(longest), as: UTF8.self) + "...")
  }
}

extension BrokerEvent.Administration {
  fileprivate var name: String {
    switch self {
    case .createTopic: "create-topic"
    case .deleteTopic: "delete-topic"
    case .connectTopic: "connect-topic"
    case .disconnectTopic: "disconnect-topic"
    case .setTopic: "set-topic"
    case .trimTopic: "trim-topic"
    case .publishRecord: "publish-record"
    case .closeConnection: "close-connection"
    case .drainNode: "drain-node"
    case .undrainNode: "undrain-node"
    case .moveShard: "move-shard"
    case .moveCursor: "move-cursor"
    case .deleteCursor: "delete-cursor"
    case .restoreStates: "restore-states"
    }
  }

  fileprivate var object: String {
    switch self {
    case .closeConnection: "a connection"
    case .drainNode, .undrainNode, .moveShard: "the cluster"
    default: "a topic"
    }
  }

  fileprivate var cursor: String? {
    switch self {
    case .moveCursor(let name), .deleteCursor(let name): name
    default: nil
    }
  }

  /// The administered object, if it isn't a topic.
  fileprivate var target: [(key: String, value: JSON)]? {
    switch self {
    case .closeConnection(let connection): [("target", .number(connection))]
    case .drainNode(let node), .undrainNode(let node): [("node", .text(node))]
    case .moveShard(let shard, let node): [("shard", .number(shard)), ("node", .text(node))]
    default: nil
    }
  }
}
