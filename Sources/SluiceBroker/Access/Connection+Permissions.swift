import SluiceAccess
import SluiceWire
import Synchronization

// What a client may do: asked once when a stream begins, before anything is looked up, so that neither the answer nor its time tells whether
// there is such a topic.
extension Connection {
  private var permissions: Permissions { admission?.identity.permissions ?? .everything }

  /// - Throws: ``ErrorCode/permissionDenied``, or ``ErrorCode/invalidTopic`` for what isn't a name.
  func require(_ rights: Rights, on name: String) throws(WireError) {
    guard let denied = try denial(of: rights, on: name) else { return }
    throw denied
  }

  /// Whether the client may know that there is such a topic.
  ///
  /// - Throws: as ``require(_:on:)``.
  func requireSight(of name: String) throws(WireError) {
    if permissions.isUnrestricted { return }
    try TopicName.validate(name)
    guard permissions.reveal(name) else { throw denied("know of", name) }
  }

  /// The topic of that name, made if there is none and the client may make it.
  ///
  /// - Throws: as ``require(_:on:)``, and ``ErrorCode/unknownTopic``.
  func useTopic(_ name: String, for rights: Rights) throws(WireError) -> Topic {
    try require(rights, on: name)
    let topic = try registry.use(name, by: quota, mayCreate: permissions.allow(.create, on: name)) {
      report(.topicCreated(asClient, topic: $0.name))
    }
    guard rights == .subscribe, !permissions.rights(on: name).contains(.subscribe) else { return topic }
    // It is an inbox. Its name is in the requests of its owner, whoever reads those.
    guard topic.claim(for: identity) else { throw denied(rights.verb, name) }
    return topic
  }

  /// The topic of a group that the client wants to be a member of. It has the broker publish what nobody gets done, and make the topic for that.
  func useTopic(for frame: JoinGroup) throws(WireError) -> Topic {
    let deadLetters = frame.settings.deadLetters
    try require(.subscribe, on: frame.topic)
    if !deadLetters.isEmpty {
      try require(.publish, on: deadLetters)
      if !permissions.allow(.create, on: deadLetters) { _ = try registry.known(deadLetters) }
    }
    return try useTopic(frame.topic, for: .subscribe)
  }

  /// Whether a subscription to a pattern is one to the topic of that name. Of inboxes a pattern knows nothing, whoever may answer to them.
  func matchesTopics(named name: String) -> Bool {
    permissions.rights(on: name).contains(.subscribe)
  }

  /// Of topics that a pattern selects, those that the client may subscribe to.
  func matched(_ topics: [Topic]) -> [Topic] {
    permissions.isUnrestricted ? topics : topics.filter { matchesTopics(named: $0.name) }
  }

  /// A page of the topics that the client may know of. Others are passed over unseen, so that neither does its time tell how many there are.
  func listTopics(after: String, limit: Int) -> (page: [TopicSummary], more: Bool) {
    let permissions = permissions
    if permissions.isUnrestricted { return registry.list(after: after, limit: limit) }
    var asked = 0
    defer { effort.spend(asked / 8) }
    return registry.list(after: after, limit: limit, in: permissions.spans) { name in
      asked += 1
      return permissions.reveal(name)
    }
  }

  /// Whom a topic's description names: everybody for whoever looks after the topic, oneself for others.
  func shownPeers(of topic: Topic) -> TopicInspection.Peers {
    if permissions.rights(on: topic.name).contains(.admin) { return .all }
    return .only(identity)
  }

  private func denial(of rights: Rights, on name: String) throws(WireError) -> WireError? {
    if permissions.isUnrestricted { return nil }
    try TopicName.validate(name)
    return permissions.allow(rights, on: name) ? nil : denied(rights.verb, name)
  }

  private func denied(_ verb: String, _ name: String) -> WireError {
    context.core.metrics.add(.deniedPermissions)
    report(.denied(asClient, action: String(verb.prefix { $0 != " " }), topic: name))
    return WireError(.permissionDenied, "the client may not \(verb) topic \(name)")
  }
}

extension Topic {
  /// The first who subscribes to an inbox may read it, and nobody else.
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
  /// What somebody may not do, who lacks it.
  fileprivate var verb: String {
    switch self {
    case .publish: "publish to"
    case .subscribe: "subscribe to"
    case .create: "create"
    default: "administer"
    }
  }
}

// MARK: Changes

// When permissions change, what is open is looked at as if it were opened now.
extension Connection {
  /// The broker has another policy.
  func accessChanged() {
    guard let authenticator = context.core.authenticator, let admission, session.phase != .handshake,
      session.phase != .authenticating
    else { return }
    guard let identity = authenticator.reconsider(admission.identity) else {
      context.core.metrics.add(.revokedConnections)
      report(.revoked(asClient))
      return fail(
        WireError(.accessRevoked, "\(admission.identity.name) may not be connected to the broker any more"))
    }
    adopt(identity)
  }

  /// From now on the client is that one.
  func adopt(_ identity: Identity) {
    guard let admission else { return }
    let former = admission.identity.permissions
    admission.identity = identity
    guard identity.permissions != former else { return }
    for stream in streams { reconsider(stream) }
  }

  private func reconsider(_ stream: UInt32) {
    attempt(stream) { () throws(WireError) in
      switch handle(stream) {
      case .none: break
      // It is looked at when it begins.
      case .starting: break
      case .committing(let cursor):
        if !permissions.allow(.subscribe, on: cursor.topic.name) { releaseStream(stream) }
      case .publication(let publication):
        // It ends as it is, with what was published before.
        if publication.ends != nil { return }
        guard let denied = try denial(of: .publish, on: publication.topic.name) else { return }
        settle(publication)
        throw denied
      case .subscription(let pattern as PatternSubscription):
        changeTopics(of: pattern)
      case .subscription(let member as GroupMember):
        try require(.subscribe, on: member.group.topic.name)
        let deadLetters = member.group.settings.deadLetters
        if !deadLetters.isEmpty { try require(.publish, on: deadLetters) }
      case .subscription(let consumer):
        if let subscription = consumer as? Subscription {
          try require(.subscribe, on: subscription.topic.name)
        }
      }
    }
  }

}
