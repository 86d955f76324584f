import SluiceAccess
import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire

// The handshake, in which the client may have to authenticate, and later changes of the client's credentials and the broker's policy.
extension Connection {
  /// Whether WELCOME hasn't been sent yet.
  var isInHandshake: Bool {
    switch streams.session.phase {
    case .handshake, .authenticating: true
    case .open, .draining: false
    }
  }

  /// Verifies the client's credentials, and completes the handshake with the result.
  func authenticate(_ agreement: ServerHandshake.Agreement) {
    client.name = agreement.clientName
    if agreement.credentials.method == .node, let authenticator = core.authenticator {
      return admit(
        agreement, authenticator.finding(vouchedFor: agreement.credentials, isProven: isProvenNode))
    }
    let reference = streams.reference
    client.verify(agreement.credentials) { job in
      reference.execute { _ in job() }
    } _: { [unowned self] finding in
      admit(agreement, finding)
    }
  }

  /// Whether the peer may state its clients' identities: it is part of this process, or its certificate is that of a node.
  private var isProvenNode: Bool {
    stream.isInternal || client.security.map { core.configuration.peers?.isNode($0) ?? false } ?? false
  }

  private func admit(_ agreement: ServerHandshake.Agreement, _ finding: Authenticator.Finding) {
    guard streams.session.phase == .authenticating else { return }
    do {
      try client.authenticated(finding, agreement.credentials, now: context.loop.now)
      streams.session.admitted()
      var agreement = agreement
      agreement.welcome.identity = client.identity.name
      agreement.welcome.expires = client.identity.wireExpiry
      opened(agreement)
    } catch {
      fail(error)
    }
  }

  /// Completes the handshake.
  func opened(_ agreement: ServerHandshake.Agreement) {
    // Anonymous connections have no limit per identity.
    if client.account == nil { try? client.enter("", now: context.loop.now) }
    client.name = agreement.clientName
    client.isNode = agreement.credentials.method == .node && !stream.isInternal
    client.beginKeeping()
    streams.session.takesOrigins = client.isNode
    streams.agree(maximumFrame: agreement.clientMaximumFrame)
    keepalive = Keepalive(milliseconds: agreement.welcome.keepalive, now: context.loop.now.nanoseconds)
    context.agreed(keepalive: agreement.welcome.keepalive)
    if core.authenticator != nil { (stream as? any PermissionAwareStream)?.learn(client) }
    send(agreement.welcome)
    client.report { .opened($0) }
    if core.stage.present != .serving { drain() }
  }

  /// Ends the connection when the client's credentials have expired. Returns whether they have.
  func checkExpiry() -> Bool {
    guard client.hasExpired(wallClock: context.loop.wallClock) else { return false }
    fail(WireError(.credentialsExpired, "the client's credentials have expired; connect again with new ones"))
    return true
  }

  /// Applies a new policy of the broker.
  func accessChanged() {
    guard core.authenticator != nil, !isInHandshake else { return }
    let name = client.identity.name
    if client.isNode, !isProvenNode {
      return fail(WireError(.accessRevoked, "the peer isn't a node of the cluster any more"))
    }
    guard let identity = client.reconsidered() else {
      return fail(WireError(.accessRevoked, "\(name) may not be connected to the broker any more"))
    }
    streams.adopt(identity)
  }
}
