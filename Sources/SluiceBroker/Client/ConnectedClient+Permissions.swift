import SluiceAccess
import SluiceSession
import SluiceTopics
import SluiceWire
import Synchronization

// Checks a client's permissions once when a stream begins, before any look-up. Neither the answer nor its time then reveals whether a topic exists.
extension ConnectedClient: StreamPermissions {
  /// Checks the permission that the verb needs on a topic, by ``VerbRule/table``. Doesn't look up the topic.
  ///
  /// - Throws: ``ErrorCode/permissionDenied``, or ``ErrorCode/invalidTopic`` for an invalid name.
  func require(_ verb: FrameType, on name: String) throws(WireError) {
    guard let denied = try denial(of: verb, on: name) else { return }
    throw denied
  }

  /// Returns the topic of that name for the verb. It is created, looked up, claimed or denied according to ``VerbRule/table``.
  ///
  /// - Parameters:
  ///   - ifMissing: whether a verb that creates topics may do so.
  ///   - stated: the settings that the client sends, which need the permission of TOPIC_CREATE.
  /// - Throws: like ``require(_:on:)``, and ``ErrorCode/unknownTopic``.
  func topic(
    _ name: String, for verb: FrameType, ifMissing: Subscribe.IfMissing = .create,
    stating stated: TopicSettings = TopicSettings()
  ) throws(WireError) -> Topic {
    try require(verb, on: name)
    if stated != TopicSettings() {
      try require(.topicCreate, on: name)
      if let there = core.registry.find(name) { try requireInbox(there, for: .topicCreate) }
    }
    let topic: Topic
    if VerbRule.rule(for: verb).absence == .creates {
      let mayCreate = ifMissing == .create && permissions.allow(.create, on: name)
      let quota = mayCreate ? quota : nil
      topic = try core.registry.use(name, stating: stated, by: quota, mayCreate: mayCreate) {
        topic in report { .topicCreated($0, topic: topic.name) }
      }
      if let quota { workBudget.spend(quota.takeTold(), of: .watchers) }
    } else {
      topic = try core.registry.known(name)
    }
    try requireInbox(topic, for: verb)
    return topic
  }

  /// Checks ownership of an inbox, if the verb needs it and the client has only the rights that follow from the inbox's name. The owner's requests contain
  /// the name, and other clients read them.
  ///
  /// - Throws: ``ErrorCode/permissionDenied``.
  func requireInbox(_ topic: Topic, for verb: FrameType) throws(WireError) {
    let rule = VerbRule.rule(for: verb)
    guard rule.inbox != .anyClient, let rights = VerbRule.rights(for: verb),
      !permissions.rights(on: topic.name).isSuperset(of: rights)
    else { return }
    let isOwner = rule.inbox == .claims ? topic.claim(for: identity) : topic.isOwned(by: identity)
    guard isOwner else { throw denied(rights.verb, topic.name) }
  }

  /// The topic of a group that the client joins. The broker publishes dead letters, and creates their topic, on the client's behalf.
  func topic(for frame: JoinGroup) throws(WireError) -> Topic {
    let deadLetters = frame.settings.deadLetters
    try require(.joinGroup, on: frame.topic)
    if !deadLetters.isEmpty {
      try require(.publishOpen, on: deadLetters)
      if !permissions.allow(.create, on: deadLetters) { _ = try core.registry.known(deadLetters) }
      try core.registry.checkTakesDeadLetters(deadLetters)
    }
    return try topic(frame.topic, for: .joinGroup, ifMissing: frame.ifMissing)
  }

  /// Returns whether a subscription to a pattern includes the topic of that name. It never includes inboxes, even those to which the client may reply.
  func matchesTopics(named name: String) -> Bool {
    guard let rights = VerbRule.rights(for: .subscribePattern) else { return true }
    return permissions.rights(on: name).isSuperset(of: rights)
  }

  func allow(_ rights: Rights, on topic: String) -> Bool { permissions.allow(rights, on: topic) }

  func makeLink(
    _ operation: LinkOperation, on topic: String, until expires: Int64
  ) throws(WireError) -> (text: String, expires: Int64) {
    guard let authenticator = core.authenticator else {
      throw WireError(.unsupported, "the broker doesn't authenticate clients, so no link is needed")
    }
    return try authenticator.link(operation, on: topic, by: identity, until: expires)
  }

  func requireReach(of patterns: [TopicPattern]) -> Bool {
    let permissions = permissions
    guard let right = VerbRule.rights(for: .subscribePattern), let first = patterns.first,
      !patterns.contains(where: { permissions.reach(right, in: $0) })
    else { return true }
    _ = denied(right.verb, first.description)
    return false
  }

  /// Returns a page of the topics that the client may see. The search skips the ranges of other names, so its time doesn't reveal how many of them exist.
  func listTopics(after: String, limit: Int) -> (page: [TopicSummary], more: Bool) {
    let permissions = permissions
    if permissions.isUnrestricted { return core.registry.list(after: after, limit: limit) }
    var asked = 0
    defer { workBudget.spend(asked, of: .names) }
    return core.registry.list(after: after, limit: limit, in: permissions.spans) { name in
      asked += 1
      return permissions.reveal(name)
    }
  }

  /// The connections that a topic's description contains: all for a client that administers the topic, its own for others.
  func shownPeers(of topic: Topic) -> TopicInspection.Peers {
    if permissions.rights(on: topic.name).contains(.admin) { return .all }
    return .only(identity: identity.name)
  }

  /// Checks that the client may administer the whole broker.
  ///
  /// - Throws: ``ErrorCode/permissionDenied``.
  func requireBroker() throws(WireError) {
    if permissions.administerEverything { return }
    core.metrics.add(.deniedPermissions)
    report { .denied($0, action: "administer", topic: ">") }
    throw WireError(
      .permissionDenied, "the client may not administer the broker: that needs the right admin on >")
  }

  /// Returns whether the answer to TOPIC_SHOW lists the topic's durable cursors and groups: if the client may use CURSOR_LIST, or administers the topic.
  func mayListConsumers(of topic: Topic) -> Bool {
    let rights = permissions.rights(on: topic.name)
    return rights.contains(.admin) || (rights.contains(.subscribe) && !TopicName.isInbox(topic.name))
  }

  func denial(of verb: FrameType, on name: String) throws(WireError) -> WireError? {
    if permissions.isUnrestricted { return nil }
    switch VerbRule.rule(for: verb).permission {
    case .none, .stream, .rightsOnEach, .sightOfEach, .broker: return nil
    case .rights(let rights):
      try TopicName.validate(name)
      return permissions.allow(rights, on: name) ? nil : denied(rights.verb, name)
    case .sight:
      try TopicName.validate(name)
      return permissions.reveal(name) ? nil : denied("know of", name)
    }
  }

  private func denied(_ verb: String, _ name: String) -> WireError {
    core.metrics.add(.deniedPermissions)
    report { .denied($0, action: String(verb.prefix { $0 != " " }), topic: name) }
    return WireError(.permissionDenied, "the client may not \(verb) topic \(name)")
  }
}

extension Topic {
  fileprivate func isOwned(by identity: Identity) -> Bool {
    state.withLock { $0.owner?.utf8.elementsEqual(identity.name.utf8) ?? false }
  }

  /// The first client that subscribes to an inbox, or creates it, owns it. Returns whether `identity` does.
  fileprivate func claim(for identity: Identity) -> Bool {
    state.withLock { state in
      guard let owner = state.owner else {
        state.owner = identity.name
        return true
      }
      return owner.utf8.elementsEqual(identity.name.utf8)
    }
  }
}

extension Rights {
  /// The action that the client may not perform without the right.
  fileprivate var verb: String {
    switch self {
    case .publish: "publish to"
    case .subscribe: "subscribe to"
    case .create: "create"
    default: "administer"
    }
  }
}
